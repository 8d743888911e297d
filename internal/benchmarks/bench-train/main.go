// Command bench-train compares training steps of primus with PyTorch, under several policies, in
// one run.
//
// Contenders take turns, a few steps each in a separate process, so that a machine that becomes
// slower affects all of them. Figures are medians over the rounds and the best step of all; ratios
// are computed within a round. PyTorch is configured to be as fast as possible: with the OpenBLAS
// kernels and the vector instructions of this CPU, OpenBLAS on OpenMP, and tcmalloc where they are
// installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/benchmarks/peer"
	"github.com/primus-fl/primus/internal/program"
)

// options are the flags.
type options struct {
	primus, python, script string
	models                 string
	rounds, steps, warmup  int
	threads                int
	tuning                 time.Duration
	output                 string
}

func main() { program.Main("bench-train", run) }

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	opts, err := parse(args, progress)
	if err != nil {
		return err
	}
	var models []model
	for name := range strings.SplitSeq(opts.models, ",") {
		m, err := findModel(name)
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	report := report{Machine: peer.Machine(), Rounds: opts.rounds, Steps: opts.steps}
	for _, m := range models {
		result, err := compare(ctx, opts, m, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		report.Models = append(report.Models, result)
	}
	if opts.output == "json" {
		return report.writeJSON(out)
	}
	return report.writeTable(out)
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench-train", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.primus, "primus", "bin/primus", "the program to measure")
	flags.StringVar(&o.python, "python", "", "the Python with PyTorch; the default is the first of /usr/bin/python3 and python3 that has it")
	flags.StringVar(&o.script, "script", "internal/benchmarks/pytorch_lm.py", "the model in PyTorch")
	flags.StringVar(&o.models, "models", "llama_6M,llama_30M", "models with commas: "+strings.Join(modelNames(), ", "))
	flags.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	flags.IntVar(&o.steps, "steps", 5, "steps measured in a turn")
	flags.IntVar(&o.warmup, "warmup", 2, "steps before them")
	flags.IntVar(&o.threads, "threads", 0, "CPU threads; 0 is one per CPU")
	flags.DurationVar(&o.tuning, "tuning", time.Minute, "how long the impls of a model are measured for the tuned policy")
	flags.StringVar(&o.output, "o", "table", "table or json")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 1 || o.steps < 1 || o.warmup < 0 || o.threads < 0 || o.tuning <= 0:
		return o, fmt.Errorf("got %d rounds of %d steps after %d, on %d threads: want at least one round and step, and no negative number", o.rounds, o.steps, o.warmup, o.threads)
	case o.output != "table" && o.output != "json":
		return o, fmt.Errorf("-o: got %q, want table or json", o.output)
	}
	return o, nil
}

// model is an experiment with the batch size of the comparison.
type model struct {
	name, config string
	batch        int // sequences per step
}

func models() []model {
	return []model{
		{"llama_6M", "examples/native/configs/llama_6M-pretrain.yaml", 8},
		{"llama_30M", "examples/native/configs/llama_30M-pretrain.yaml", 4},
		{"gpt2_10M", "examples/native/configs/gpt2_10M-pretrain.yaml", 4},
		{"moe_8x3M", "examples/native/configs/moe_8x3M-pretrain.yaml", 4},
	}
}

func modelNames() []string {
	var names []string
	for _, m := range models() {
		names = append(names, m.name)
	}
	return names
}

func findModel(name string) (model, error) {
	i := slices.Index(modelNames(), name)
	if i < 0 {
		return model{}, fmt.Errorf("-models: got %q, want %s", name, strings.Join(modelNames(), ", "))
	}
	return models()[i], nil
}
