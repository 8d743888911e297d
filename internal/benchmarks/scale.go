package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
)

// scaleOptions are the flags of scale.
type scaleOptions struct {
	primus, python, dir string
	library, config     string
	rounds, steps       int
	batch               int
	only                []string
	markdown            bool
	progress            io.Writer
	work                string // a directory for the run
}

// The parts of the benchmark.
const (
	partAllReduce = "all_reduce"
	partTraining  = "training"
	partModel     = "model"
	partLayouts   = "layouts"
)

// scale measures training on several ranks, beside peers in the same run: all_reduce beside a C
// program with the same library and beside PyTorch's gloo; two ranks beside two independent runs
// and beside DistributedDataParallel of PyTorch; and a model of a step, from the latency and the
// bandwidth that were measured, beside the steps of two and four ranks. The figures are medians
// over the rounds. If asked for, it compares losses and gradients in all layouts.
func scale(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseScale(args, progress)
	if err != nil {
		return err
	}
	if o.work, err = os.MkdirTemp("", "scale-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.work) }() // it has nothing that is read again
	sections := []plaintext.Section{{Lines: []string{fmt.Sprintf("%s, %d rounds", machine(), o.rounds)}}}
	var network *measured
	if o.wants(partAllReduce) || o.wants(partModel) {
		var section plaintext.Section
		if section, network, err = allReduce(ctx, o); err != nil {
			return fmt.Errorf("all_reduce: %w", err)
		}
		sections = append(sections, section)
	}
	if o.wants(partTraining) || o.wants(partModel) {
		more, err := training(ctx, o, network)
		if err != nil {
			return fmt.Errorf("training: %w", err)
		}
		sections = append(sections, more...)
	}
	if slices.Contains(o.only, partLayouts) {
		section, err := o.layouts(ctx)
		if err != nil {
			return fmt.Errorf("layouts: %w", err)
		}
		sections = append(sections, section)
	}
	return plaintext.WriteSections(out, o.markdown, sections)
}

func parseScale(args []string, progress io.Writer) (scaleOptions, error) {
	o := scaleOptions{progress: progress}
	flags := newFlags("scale", progress)
	primusFlag(flags, &o.primus)
	pythonFlag(flags, &o.python)
	flags.StringVar(&o.dir, "dir", "internal/benchmarks/peers", "the directory of the peers' programs")
	flags.StringVar(&o.library, "library", "openmpi", "the MPI library: openmpi or mpich")
	flags.StringVar(&o.config, "config", "examples/native/configs/llama_6M-pretrain.yaml", "the experiment to train")
	flags.IntVar(&o.batch, "batch", 4, "sequences per step and rank")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	flags.IntVar(&o.steps, "steps", 8, "steps in a turn; the first two do not count")
	flags.BoolVar(&o.markdown, "md", false, "write Markdown")
	only := flags.String("only", "", "only these parts, with commas: all_reduce, training, model, or layouts, which is left out otherwise")
	if err := parse(flags, args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, part := range o.only {
		if !slices.Contains([]string{partAllReduce, partTraining, partModel, partLayouts}, part) {
			return o, fmt.Errorf("-only: given %q, want all_reduce, training, model or layouts", part)
		}
	}
	switch {
	case o.rounds < 1 || o.steps <= warmup || o.batch < 1:
		return o, fmt.Errorf("given %d rounds of %d steps with %d sequences: want at least one round, %d steps and one sequence", o.rounds, o.steps, o.batch, warmup+1)
	case o.library != "openmpi" && o.library != "mpich":
		return o, fmt.Errorf("-library: given %q, want openmpi or mpich", o.library)
	}
	return o, nil
}

func (o scaleOptions) wants(part string) bool { return o.only == nil || slices.Contains(o.only, part) }

// say reports progress.
func (o scaleOptions) say(format string, args ...any) { fmt.Fprintf(o.progress, format+"\n", args...) }

// sectionOf returns a section with a table.
func sectionOf(title string, header table.Row, rows []table.Row, right ...int) plaintext.Section {
	return plaintext.Section{Title: title, Header: header, Rows: rows, Right: right}
}
