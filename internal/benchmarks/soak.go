package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/program"
)

// soakOptions are the flags of soak.
type soakOptions struct {
	primus, config string
	steps, rows    int
}

// soak trains a tiny model for many steps, with validation and checkpoints,
// and watches whether the process grows: its goroutines, threads, heap and memory.
//
// It asks the run for its metrics, prints a row of them now and then, and compares
// the second half of the rows with the first.
func soak(ctx context.Context, args []string, out, progress io.Writer) error {
	var o soakOptions
	flags := newFlags("soak", progress)
	primusFlag(flags, &o.primus)
	flags.StringVar(&o.config, "config", "examples/native/configs/llama_2M-pretrain.yaml", "the experiment, made tiny")
	flags.IntVar(&o.steps, "steps", 10_000, "steps to train")
	flags.IntVar(&o.rows, "rows", 10, "rows to print")
	if err := parse(flags, args); err != nil {
		return err
	}
	if o.rows < 2 || o.steps < 10*o.rows {
		return fmt.Errorf("given %d rows of %d steps, want at least two rows and ten steps for each", o.rows, o.steps)
	}
	rows, err := watch(ctx, o, out)
	if err != nil {
		return err
	}
	if err := grown(rows); err != nil {
		return err
	}
	fmt.Fprintln(out, "steady")
	return nil
}

// soakRow is what the process held after a step.
type soakRow struct {
	step, goroutines, threads int
	heap, resident            float64 // MiB
}

// watch trains and returns the rows that it prints.
func watch(ctx context.Context, o soakOptions, out io.Writer) ([]soakRow, error) {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, o.primus, "train", "pretrain", "--config", o.config, "--metrics-addr", "127.0.0.1:0",
		"num_layers=2", "hidden_size=64", "ffn_hidden_size=128", "num_attention_heads=2", "num_query_groups=2", "seq_length=64",
		"micro_batch_size=1", "global_batch_size=2", "log_interval=1000", "eval_interval=1000", "save_interval=1000", fmt.Sprintf("train_iters=%d", o.steps))
	cmd.Env = program.Environ("PRIMUS_WORKSPACE=" + dir)
	p, err := program.Start(cmd)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	fmt.Fprintf(out, "%8s %11s %8s %9s %13s\n", "step", "goroutines", "threads", "heap MiB", "resident MiB")
	var rows []soakRow
	for p.Running() {
		time.Sleep(20 * time.Millisecond)
		r, ok := scrape(&p.Log)
		if !ok || r.step < (len(rows)+1)*o.steps/(o.rows+1) {
			continue
		}
		rows = append(rows, r)
		fmt.Fprintf(out, "%8d %11d %8d %9.1f %13.1f\n", r.step, r.goroutines, r.threads, r.heap, r.resident)
	}
	if p.Code() != 0 {
		return nil, fmt.Errorf("%s: exit code %d:\n%s", o.primus, p.Code(), p.Tail())
	}
	return rows, nil
}

var address = regexp.MustCompile(`metrics on (http://\S+)`)

// scrape asks the run that writes the log. It returns false before the run answers and after it has
// ended.
func scrape(log *primustest.Buffer) (soakRow, bool) {
	found := address.FindStringSubmatch(log.String())
	if found == nil {
		return soakRow{}, false
	}
	answer, err := http.Get(found[1])
	if err != nil {
		return soakRow{}, false
	}
	defer answer.Body.Close()
	return parseMetrics(answer.Body)
}

// parseMetrics reads a row from metrics in the text format; all of its values must be present.
func parseMetrics(metrics io.Reader) (soakRow, bool) {
	values := map[string]float64{}
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		if at := strings.LastIndexByte(rest, ' '); at >= 0 {
			values[name], _ = strconv.ParseFloat(rest[at+1:], 64)
		}
	}
	const mib = 1 << 20
	r := soakRow{
		step: int(values["primus_train_step"]), goroutines: int(values["go_goroutines"]), threads: int(values["go_threads"]),
		heap: values["go_memstats_heap_inuse_bytes"] / mib, resident: values["process_resident_memory_bytes"] / mib,
	}
	return r, r.step > 0 && r.goroutines > 0 && r.threads > 0 && r.resident > 0
}

// slack is how much memory may grow, in MiB and as a share: the Go heap changes between two
// collections.
const (
	slack     = 4
	slackPart = 1.05
)

// grown compares the second half of the rows with the first. It takes the smallest heap of each
// half, which is what a collection leaves, and the largest of the other values. A scrape adds up to
// two goroutines.
func grown(rows []soakRow) error {
	if len(rows) < 2 {
		return fmt.Errorf("saw %d rows before the run ended, want at least two: give more steps", len(rows))
	}
	first, second := bounds(rows[:len(rows)/2]), bounds(rows[len(rows)/2:])
	if second.goroutines > first.goroutines+2 || second.threads > first.threads+1 ||
		second.heap > first.heap*slackPart+slack || second.resident > first.resident*slackPart+slack {
		return fmt.Errorf("the process grew after step %d: from %d to %d goroutines, %d to %d threads, heap of %.1f to %.1f MiB, resident %.1f to %.1f MiB",
			first.step, first.goroutines, second.goroutines, first.threads, second.threads, first.heap, second.heap, first.resident, second.resident)
	}
	return nil
}

func bounds(rows []soakRow) soakRow {
	b := rows[0]
	for _, r := range rows {
		b.step, b.goroutines, b.threads = r.step, max(b.goroutines, r.goroutines), max(b.threads, r.threads)
		b.heap, b.resident = min(b.heap, r.heap), max(b.resident, r.resident)
	}
	return b
}
