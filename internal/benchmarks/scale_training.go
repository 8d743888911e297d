package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/sysmem"
)

// warmup is how many steps of a turn do not count.
const warmup = 2

// shape is the part of the output of `primus benchmark train -o json` that is used here.
type shape struct {
	Parameters int            `json:"parameters"`
	Shape      map[string]any `json:"shape"`
}

// The contenders of training. All have one thread in each process.
const (
	independent = "two independent runs"
	twoRanks    = "two ranks"
	overlapped  = "two ranks, overlap_grad_reduce"
	sharded     = "two ranks, use_distributed_optimizer"
	ddp         = "PyTorch DDP over gloo"
	fourRanks   = "four ranks"
)

// training compares the tokens per second of two ranks, and a model of a step with what was
// measured.
func training(ctx context.Context, o scaleOptions, network *measured) ([]plaintext.Section, error) {
	var s shape
	batch := strconv.Itoa(o.batch)
	look := exec.CommandContext(ctx, o.primus, "benchmark", "train", "--config", o.config, "-o", "json", "--steps", "1", "--warmup", "0",
		"--threads", "1", "micro_batch_size="+batch, "global_batch_size="+batch)
	if err := answer(look, &s); err != nil {
		return nil, err
	}
	tokens := float64(o.batch) * s.seq()
	turns := map[string]func() (float64, error){
		independent: func() (float64, error) { return o.trainApart(ctx, tokens) },
		twoRanks:    func() (float64, error) { return o.train(ctx, 2, tokens) },
	}
	order := []string{independent, twoRanks}
	if o.wants(partTraining) {
		turns[overlapped] = func() (float64, error) { return o.train(ctx, 2, tokens, "overlap_grad_reduce=true") }
		turns[sharded] = func() (float64, error) { return o.train(ctx, 2, tokens, "use_distributed_optimizer=true") }
		turns[ddp] = func() (float64, error) { return o.trainPyTorch(ctx, s) }
		order = append(order, overlapped, sharded, ddp)
	}
	if o.wants(partModel) {
		turns[fourRanks] = func() (float64, error) { return o.train(ctx, 4, tokens) }
		order = append(order, fourRanks)
	}
	speeds := map[string][]float64{}
	for round := range o.rounds {
		for _, name := range order {
			o.say("training: round %d of %d: %s", round+1, o.rounds, name)
			speed, err := turns[name]()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			speeds[name] = append(speeds[name], speed)
		}
	}
	var sections []plaintext.Section
	if o.wants(partTraining) {
		sections = append(sections, o.trainingSection(order, speeds))
	}
	if o.wants(partModel) && network != nil {
		sections = append(sections, modelSections(s, tokens, speeds, network.Network)...)
	}
	return sections, nil
}

func (o scaleOptions) trainingSection(order []string, speeds map[string][]float64) plaintext.Section {
	var rows []table.Row
	for _, name := range order {
		if name == fourRanks {
			continue
		}
		rows = append(rows, table.Row{name, fmt.Sprintf("%.0f", stats.Median(speeds[name])), ratio(speeds, name, independent), ratio(speeds, name, ddp)})
	}
	title := fmt.Sprintf("training %s on two threads, %d sequences per step and process, tokens/s", filepath.Base(o.config), o.batch)
	return sectionOf(title, table.Row{"", "tokens/s", "of independent runs", "of PyTorch DDP"}, rows, 2, 3, 4)
}

// ratio returns the median over the rounds.
func ratio(speeds map[string][]float64, of, to string) string {
	var all []float64
	for i, v := range speeds[of] {
		if i < len(speeds[to]) {
			all = append(all, v/speeds[to][i])
		}
	}
	if all == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", stats.Median(all))
}

// train trains in ranks of one thread and returns the tokens per second of all.
func (o scaleOptions) train(ctx context.Context, ranks int, tokens float64, more ...string) (float64, error) {
	dir, err := os.MkdirTemp(o.work, "run-")
	if err != nil {
		return 0, err
	}
	global := fmt.Sprintf("global_batch_size=%d", ranks*o.batch)
	line := o.mpirun(ranks, append(o.line(dir), append(more, global)...)...)
	if o.library == "mpich" {
		line = append(o.line(dir), append(more, global, "--nproc", strconv.Itoa(ranks))...)
	}
	if err := execute(ctx, line); err != nil {
		return 0, err
	}
	step, err := medianStep(dir)
	return float64(ranks) * tokens / step, err
}

// trainApart trains two runs at the same time and returns the tokens per second of both together.
func (o scaleOptions) trainApart(ctx context.Context, tokens float64) (float64, error) {
	speeds, faults := make([]float64, 2), make([]error, 2)
	var both sync.WaitGroup
	for i := range speeds {
		both.Go(func() { speeds[i], faults[i] = o.trainAlone(ctx, tokens) })
	}
	both.Wait()
	return speeds[0] + speeds[1], errors.Join(faults...)
}

// trainAlone trains a run of one rank.
func (o scaleOptions) trainAlone(ctx context.Context, tokens float64) (float64, error) {
	dir, err := os.MkdirTemp(o.work, "run-")
	if err != nil {
		return 0, err
	}
	if err := execute(ctx, append(o.line(dir), fmt.Sprintf("global_batch_size=%d", o.batch))); err != nil {
		return 0, err
	}
	step, err := medianStep(dir)
	return tokens / step, err
}

// line is the command that trains, without the batch.
func (o scaleOptions) line(dir string) []string {
	return []string{
		o.primus, "train", "pretrain", "--config", o.config, "--threads", "1", "workspace=" + dir, "train_iters=" + strconv.Itoa(o.steps),
		"micro_batch_size=" + strconv.Itoa(o.batch), "eval_interval=0", "save_interval=0", "log_interval=1000", "train_data_max_bytes=4000000",
		"lr_warmup_iters=0",
	}
}

func execute(ctx context.Context, line []string) error {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = without(os.Environ(), "TE_FL_", "PRIMUS_POLICY=", "WORLD_SIZE=", "RANK=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, text)
	}
	return nil
}

// medianStep returns the seconds of a step of the run below a directory.
func medianStep(dir string) (float64, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "metrics.jsonl"))
	if err != nil || len(found) != 1 {
		return 0, fmt.Errorf("metrics.jsonl below %s: found %v", dir, found)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return 0, err
	}
	var steps []float64
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var record struct {
			Seconds float64 `json:"step_seconds"`
		}
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return 0, fmt.Errorf("%s: %w", found[0], err)
		}
		steps = append(steps, record.Seconds)
	}
	return stats.Median(steps[min(warmup, len(steps)):]), nil
}

// trainPyTorch trains the same model in two processes of PyTorch.
func (o scaleOptions) trainPyTorch(ctx context.Context, s shape) (float64, error) {
	python, err := pythonOf(ctx, o.python)
	if err != nil {
		return 0, err
	}
	args := append(torchrun(python, filepath.Join(o.dir, "pytorch_lm.py")), "--steps", strconv.Itoa(o.steps-warmup), "--warmup", strconv.Itoa(warmup), "--threads", "1")
	args = append(args, shapeFlags(s.Shape)...)
	var got struct {
		Parameters      int     `json:"parameters"`
		TokensPerSecond float64 `json:"tokens_per_second"`
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(without(os.Environ(), "OMP_", "LD_PRELOAD="), pytorchSettings(1)...)
	if err := answer(cmd, &got); err != nil {
		return 0, err
	}
	if got.Parameters != s.Parameters {
		return 0, fmt.Errorf("PyTorch trains a model of %d parameters, primus one of %d: they cannot be compared", got.Parameters, s.Parameters)
	}
	return got.TokensPerSecond, nil
}

func (s shape) seq() float64 {
	n, _ := s.Shape["seq"].(float64)
	return n
}

// messages is how many buckets gradients are sent in.
func messages(bytes float64) int { return max(8, int(bytes/(16<<20))) }

// modelSections compares a model of a step with steps that were measured, and says what it gives
// for more ranks on other networks.
func modelSections(s shape, tokens float64, speeds map[string][]float64, here projection.Network) []plaintext.Section {
	gradients := 4 * float64(s.Parameters)
	compute := 2 * tokens / stats.Median(speeds[independent]) // both ran at the same time
	exchange := func(n projection.Network, ranks int) float64 {
		return n.AllReduce(gradients, messages(gradients), ranks)
	}
	var rows []table.Row
	for _, m := range []struct {
		name  string
		ranks int
	}{{twoRanks, 2}, {fourRanks, 4}} {
		shared := max(1, float64(m.ranks)/2) // ranks of two threads
		predicted := shared*compute + exchange(here, m.ranks)
		got := float64(m.ranks) * tokens / stats.Median(speeds[m.name])
		rows = append(rows, table.Row{m.name, fmt.Sprintf("%.1f", 1e3*predicted), fmt.Sprintf("%.1f", 1e3*got), fmt.Sprintf("%+.1f %%", 100*(predicted/got-1))})
	}
	check := sectionOf(fmt.Sprintf("a step as the model says: computing alone %.1f ms, latency %.2f µs, bandwidth %.2f GB/s, %s of gradients in %d messages",
		1e3*compute, 1e6*here.Latency, here.Bandwidth/1e9, sysmem.Text(gradients), messages(gradients)),
		table.Row{"", "model ms", "measured ms", "model is"}, rows, 2, 3, 4)
	rows = nil
	for _, n := range projection.Networks() {
		row := table.Row{n.Name, fmt.Sprintf("%.0f", 1e6*n.Latency), fmt.Sprintf("%.1f", n.Bandwidth/1e9)}
		for _, ranks := range []int{8, 64, 256, 1024} {
			row = append(row, fmt.Sprintf("%.3f", compute/(compute+exchange(n, ranks))))
		}
		rows = append(rows, row)
	}
	more := sectionOf("efficiency of more ranks, each with the batch of above and its own machine, when nothing hides the exchange",
		table.Row{"network", "latency µs", "GB/s", "8 ranks", "64", "256", "1,024"}, rows, 2, 3, 4, 5, 6, 7)
	return []plaintext.Section{check, more}
}
