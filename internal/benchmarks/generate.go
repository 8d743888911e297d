package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/primus-fl/primus/internal/stats"
)

// generateOptions are the flags of generate.
type generateOptions struct {
	primus, model, llama    string
	tokens, rounds, threads int
}

// prompt is the first token, a newline.
const prompt = 10

// generator is one way to generate; turn returns tokens per second.
type generator struct {
	name  string
	turn  func(ctx context.Context) (float64, error)
	turns []float64
}

// generate compares greedy generation of one text by primus with PyTorch and, where the npm package
// node-llama-cpp is, with llama.cpp, from the same weights in f32 and on the same threads. Figures
// are medians over the rounds.
func generate(ctx context.Context, args []string, out, progress io.Writer) error {
	var o generateOptions
	flags := newFlags("generate", progress)
	primusFlag(flags, &o.primus)
	flags.StringVar(&o.model, "model", "llama_30M", "an example of a Llama, such as llama_2M or llama_6M")
	flags.StringVar(&o.llama, "llama-cpp", "", "a folder in which npm has installed node-llama-cpp; none leaves llama.cpp out")
	flags.IntVar(&o.tokens, "tokens", 200, "tokens to generate")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	flags.IntVar(&o.threads, "threads", runtime.NumCPU(), "CPU threads")
	if err := parse(flags, args); err != nil {
		return err
	}
	if o.tokens < 1 || o.rounds < 1 || o.threads < 1 {
		return errors.New("want at least one token, round and thread")
	}
	dir, err := os.MkdirTemp("", "bench-generate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	checkpoint, err := o.checkpoint(ctx, dir)
	if err != nil {
		return err
	}
	all := []*generator{o.ours(checkpoint), o.torch(checkpoint)}
	if o.llama != "" {
		c, err := o.llamaCpp(ctx, dir, checkpoint)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	for round := range o.rounds {
		for _, c := range all {
			speed, err := c.turn(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.turns = append(c.turns, speed)
			fmt.Fprintf(progress, "round %d: %s %.1f tokens/s\n", round+1, c.name, speed)
		}
	}
	return o.report(out, all)
}

// checkpoint trains the model for one step and returns where its weights are.
func (o *generateOptions) checkpoint(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, o.primus, "train", "pretrain", "--config", "examples/native/configs/"+o.model+"-pretrain.yaml",
		"train_iters=1", "micro_batch_size=1", "global_batch_size=1", "eval_interval=0", "workspace="+dir, "work_group=bench", "user_name=bench", "exp_name=run")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the weights: %w\n%s", err, out)
	}
	return filepath.Join(dir, "bench", "bench", "run", "checkpoints", "step-00000001"), nil
}

var printedSpeed = regexp.MustCompile(`([\d.]+) tokens/s\n$`)

func (o *generateOptions) ours(checkpoint string) *generator {
	return &generator{name: "primus", turn: func(ctx context.Context) (float64, error) {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, o.primus, "generate", "--checkpoint", checkpoint, "--prompt", string(rune(prompt)),
			"--temperature", "0", "--max-tokens", strconv.Itoa(o.tokens), "--threads", strconv.Itoa(o.threads))
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, said.Bytes())
		}
		found := printedSpeed.FindSubmatch(said.Bytes())
		if found == nil {
			return 0, fmt.Errorf("no speed in %q", said.Bytes())
		}
		return strconv.ParseFloat(string(found[1]), 64)
	}}
}

func (o *generateOptions) torch(checkpoint string) *generator {
	return &generator{name: "pytorch", turn: func(ctx context.Context) (float64, error) {
		python, err := pythonOf(ctx, "")
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, python, "internal/benchmarks/peers/generate.py", checkpoint,
			"--prompt", strconv.Itoa(prompt), "--tokens", strconv.Itoa(o.tokens), "--threads", strconv.Itoa(o.threads))
		cmd.Env = append(os.Environ(), pytorchSettings(o.threads)...)
		return speedOf(cmd)
	}}
}

func (o *generateOptions) llamaCpp(ctx context.Context, dir, checkpoint string) (*generator, error) {
	file := filepath.Join(dir, "model.gguf")
	if out, err := exec.CommandContext(ctx, o.primus, "export", "--checkpoint", checkpoint, "--format", "gguf", "--dtype", "f32", "-o", file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("export for llama.cpp: %w\n%s", err, out)
	}
	return &generator{name: "llama.cpp", turn: func(ctx context.Context) (float64, error) {
		return speedOf(exec.CommandContext(ctx, "node", "internal/benchmarks/peers/llama.mjs", o.llama, file,
			strconv.Itoa(prompt), strconv.Itoa(o.tokens), strconv.Itoa(o.threads)))
	}}, nil
}

// speedOf runs a peer, which prints its speed as JSON.
func speedOf(cmd *exec.Cmd) (float64, error) {
	var got struct {
		Speed float64 `json:"tokens_per_second"`
	}
	err := answer(cmd, &got)
	return got.Speed, err
}

func (o *generateOptions) report(out io.Writer, all []*generator) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, %d tokens, %d threads, %d rounds\ttokens/s\tprimus beside it\n", o.model, o.tokens, o.threads, o.rounds)
	for _, c := range all {
		ratios := slices.Clone(all[0].turns)
		for i := range ratios {
			ratios[i] /= c.turns[i]
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\n", c.name, stats.Median(c.turns), stats.Median(ratios))
	}
	return t.Flush()
}
