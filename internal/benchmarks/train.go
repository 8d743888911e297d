package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// trainOptions are the flags of train.
type trainOptions struct {
	primus, python, script string
	rounds, steps, warmup  int
	threads                int
	tuning                 time.Duration
	output                 string
}

// train compares training steps of primus with PyTorch, under several policies, in one run.
//
// Contenders take turns, a few steps each in a separate process. Figures are medians over the
// rounds and the best step of all. PyTorch is configured to be as fast as possible: with the
// OpenBLAS kernels and the vector instructions of this CPU, OpenBLAS on OpenMP, and tcmalloc where
// they are installed.
func train(ctx context.Context, args []string, out, progress io.Writer) error {
	var o trainOptions
	flags := newFlags("train", progress)
	primusFlag(flags, &o.primus)
	pythonFlag(flags, &o.python)
	formatFlag(flags, &o.output)
	flags.StringVar(&o.script, "script", "internal/benchmarks/peers/pytorch_lm.py", "the model in PyTorch")
	names := flags.String("models", "llama_6M,llama_30M", "models with commas: "+strings.Join(modelNames(), ", "))
	flags.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	flags.IntVar(&o.steps, "steps", 5, "steps measured in a turn")
	flags.IntVar(&o.warmup, "warmup", 2, "steps before them")
	flags.IntVar(&o.threads, "threads", 0, "CPU threads; 0 is one per CPU")
	flags.DurationVar(&o.tuning, "tuning", time.Minute, "how long the impls of a model are measured for the tuned policy")
	if err := parse(flags, args); err != nil {
		return err
	}
	if o.rounds < 1 || o.steps < 1 || o.warmup < 0 || o.threads < 0 || o.tuning <= 0 {
		return fmt.Errorf("given %d rounds of %d steps after %d, on %d threads: want at least one round and step, and no negative number", o.rounds, o.steps, o.warmup, o.threads)
	}
	var models []model
	for name := range strings.SplitSeq(*names, ",") {
		m, err := findModel(name)
		if err != nil {
			return err
		}
		models = append(models, m)
	}
	report := trainReport{Machine: machine(), Rounds: o.rounds, Steps: o.steps}
	for _, m := range models {
		result, err := compare(ctx, o, m, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		report.Models = append(report.Models, result)
	}
	return write(out, o.output, report, report.writeTable)
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
		return model{}, fmt.Errorf("-models: given %q, want %s", name, strings.Join(modelNames(), ", "))
	}
	return models()[i], nil
}
