package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
)

// pauses are how long saves stop training, beside a copy of what is saved.
type pauses struct {
	Model  string  `json:"model"`
	Bytes  float64 `json:"bytes"`         // of weights and moments
	Copy   float64 `json:"copy_seconds"`  // of as many bytes, by one thread, into memory that was used before
	First  float64 `json:"first_seconds"` // pause of the first save, which allocates the copy
	Later  float64 `json:"later_seconds"` // median pause of the others
	Waits  float64 `json:"waits_seconds"` // median pause with async_save=false
	Copies float64 `json:"copies"`        // Later / Copy
}

// stateBytes is what a checkpoint takes per parameter: the weight and two moments of Adam.
const stateBytes = 12

// saveRuns are runs of some steps that save after every other one.
func saveRuns() [][]string {
	return [][]string{{"llama_2M-pretrain", "train_iters=12"}, {"llama_6M-pretrain", "train_iters=12"}, {"llama_30M-pretrain", "train_iters=8", "global_batch_size=1", "micro_batch_size=1"}}
}

// save trains models that save in the background, and with training that waits.
func save(ctx context.Context, args []string, out, progress io.Writer) error {
	var all []pauses
	format, err := eachRun("save", args, progress, saveRuns(), func(primus, dir string, r []string) error {
		line := append([]string{"train", "--config", r[0], "load=none", "save_interval=2", "eval_interval=1000000", "final_eval_windows=1"}, r[1:]...)
		p := pauses{Model: strings.TrimSuffix(r[0], "-pretrain")}
		aside, parameters, err := pausesOf(ctx, primus, dir, append(line, "async_save=true")...)
		if err != nil {
			return err
		}
		waits, _, err := pausesOf(ctx, primus, dir, append(line, "async_save=false")...)
		if err != nil {
			return err
		}
		p.Bytes = stateBytes * parameters
		p.Copy, p.First, p.Later, p.Waits = copyOnce(int(p.Bytes)), aside[0], median(aside[1:]), median(waits)
		p.Copies = p.Later / p.Copy
		all = append(all, p)
		return nil
	})
	if err != nil {
		return err
	}
	return write(out, format, all, func(w io.Writer) error {
		t := plaintext.NewTable(table.Row{"model", "state", "one copy", "pause", "copies", "first pause", "async_save=false"})
		for _, p := range all {
			t.AppendRow(table.Row{
				p.Model, figure("%.0f MB", p.Bytes/1e6), figure("%.1f ms", p.Copy*1e3), figure("%.1f ms", p.Later*1e3), figure("%.2f", p.Copies),
				figure("%.1f ms", p.First*1e3), figure("%.1f ms", p.Waits*1e3),
			})
		}
		_, err := fmt.Fprintln(w, plaintext.Render(w, t))
		return err
	})
}

// savedLine is what a run logs of a save, and trainedLine what it logs of its model.
var (
	savedLine   = regexp.MustCompile(`saved checkpoint step=(\d+) .* pause=(\S+)`)
	trainedLine = regexp.MustCompile(`training \S+: (\d+) parameters, (\d+) steps`)
)

// pausesOf returns the pauses of the saves of a run but for the last one, which nothing goes on
// beside, and the number of parameters.
func pausesOf(ctx context.Context, primus, dir string, args ...string) (seconds []float64, parameters float64, err error) {
	_, text, err := primusSays(ctx, primus, dir, args...)
	if err != nil {
		return nil, 0, err
	}
	model := trainedLine.FindStringSubmatch(text)
	if model == nil {
		return nil, 0, fmt.Errorf("want %v in\n%s", trainedLine, text)
	}
	if parameters, err = strconv.ParseFloat(model[1], 64); err != nil {
		return nil, 0, err
	}
	for _, found := range savedLine.FindAllStringSubmatch(text, -1) {
		if found[1] == model[2] {
			continue
		}
		d, err := time.ParseDuration(found[2])
		if err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, d.Seconds())
	}
	if len(seconds) < 2 {
		return nil, 0, fmt.Errorf("given %d saves before the last one, want two at least\n%s", len(seconds), text)
	}
	return seconds, parameters, nil
}

// median returns the middle of times, the larger one of two.
func median(times []float64) float64 { return slices.Sorted(slices.Values(times))[len(times)/2] }

// copyOnce returns how long a copy takes, the median of several.
func copyOnce(size int) float64 {
	from, to := make([]byte, size), make([]byte, size)
	for i := range from {
		from[i], to[i] = byte(i), 1
	}
	var took []float64
	for range 5 {
		begin := time.Now()
		copy(to, from)
		took = append(took, time.Since(begin).Seconds())
	}
	return median(took)
}
