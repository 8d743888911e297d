package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/plaintext"
)

// layout is a way in which ranks divide a run besides the stages of a pipeline.
type layout struct {
	name string
	args []string
}

// layouts compares the losses and the norms of gradients of a few steps in each schedule and layout
// with those of one process.
func (o scaleOptions) layouts(ctx context.Context) (plaintext.Section, error) {
	all := []layout{
		{"nothing else", nil},
		{"2 tensor parallel", []string{"tensor_model_parallel_size=2", "sequence_parallel=true"}},
		{"2 context parallel", []string{"context_parallel_size=2"}},
		{"2 data parallel, shared optimizer", []string{"use_distributed_optimizer=true"}},
	}
	want, err := o.fewSteps(ctx, 1)
	if err != nil {
		return plaintext.Section{}, err
	}
	header, right := table.Row{"schedule"}, []int{}
	for i, l := range all {
		header, right = append(header, l.name), append(right, i+2)
	}
	var rows []table.Row
	for i, name := range append([]string{""}, pipeline.Names()...) {
		row, args, stages := table.Row{name}, []string{"pipeline_model_parallel_size=2", "pp_algorithm=" + name}, 2
		if i == 0 {
			row, args, stages = table.Row{"one stage"}, nil, 1
		}
		for k, l := range all {
			ranks := stages
			if k > 0 {
				ranks *= 2
			}
			o.say("layouts: %v, %s", row[0], l.name)
			got, err := o.fewSteps(ctx, ranks, append(args, l.args...)...)
			if err != nil {
				return plaintext.Section{}, fmt.Errorf("%v, %s: %w", row[0], l.name, err)
			}
			loss, norm := got.from(want)
			row = append(row, fmt.Sprintf("%.0e, %.0e", loss, norm))
		}
		rows = append(rows, row)
	}
	return sectionOf(fmt.Sprintf("largest difference from one process in %d steps: of losses, of norms of gradients, as a part of each", len(want)), header, rows, right...), nil
}

// records are the steps of a run.
type records []struct {
	Loss float64 `json:"loss"`
	Norm float64 `json:"grad_norm"`
}

// from returns the largest differences from other steps, as parts of them.
func (r records) from(want records) (loss, norm float64) {
	if len(r) != len(want) {
		return math.Inf(1), math.Inf(1)
	}
	for i, w := range want {
		loss = max(loss, math.Abs(r[i].Loss/w.Loss-1))
		norm = max(norm, math.Abs(r[i].Norm/w.Norm-1))
	}
	return loss, norm
}

// fewSteps trains four steps of a small model in some ranks.
func (o scaleOptions) fewSteps(ctx context.Context, ranks int, more ...string) (records, error) {
	dir, err := os.MkdirTemp(o.work, "run-")
	if err != nil {
		return nil, err
	}
	args := append(o.line(dir), append(more, "train_iters=4", "num_layers=8", "seq_length=32", "micro_batch_size=1", "global_batch_size=8", "sample_prompt=a")...)
	line := args
	switch {
	case ranks > 1 && o.library == "mpich":
		line = append(args, "--nproc", strconv.Itoa(ranks))
	case ranks > 1:
		line = o.mpirun(ranks, args...)
	}
	if err := execute(ctx, line); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "metrics.jsonl"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("metrics.jsonl below %s: found %v", dir, found)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	var all records
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		all = append(all, records{{}}...)
		if err := json.Unmarshal(lines.Bytes(), &all[len(all)-1]); err != nil {
			return nil, fmt.Errorf("%s: %w", found[0], err)
		}
	}
	return all, nil
}
