package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/primus-fl/primus/internal/stats"
)

// trainReport is the result of a run.
type trainReport struct {
	Machine string       `json:"machine"`
	Rounds  int          `json:"rounds"`
	Steps   int          `json:"steps"` // measured in each turn
	Models  []comparison `json:"models"`
}

// comparison is one model under all contenders.
type comparison struct {
	Model string     `json:"model"`
	Rows  []trainRow `json:"contenders"`
}

// trainRow is one contender. Ratios are relative to PyTorch, and 0 without it.
type trainRow struct {
	Name      string          `json:"name"`
	Turns     []trainTurn     `json:"turns"`
	Tokens    float64         `json:"tokens_per_second"`      // median of the rounds
	Best      float64         `json:"best_tokens_per_second"` // of all steps
	Ratio     float64         `json:"ratio"`                  // median of the ratios of each round
	Interval  *stats.Interval `json:"ratio_interval,omitempty"`
	BestRatio float64         `json:"best_ratio"`
	Gain      float64         `json:"over_flagos"` // median of the ratios of each round to flagos
	MFU       float64         `json:"mfu"`
	Memory    float64         `json:"memory_ratio"`
	PeakBytes uint64          `json:"peak_bytes"`
	Absent    string          `json:"absent,omitempty"` // why there are no turns
}

// The contenders that the others are compared with.
const (
	peerName = "pytorch"
	baseline = "flagos"
)

// compare makes all contenders take turns.
func compare(ctx context.Context, o trainOptions, m model, progress io.Writer) (comparison, error) {
	c := comparison{Model: m.name}
	var seen []steps
	var contenders []contender
	for _, p := range policies() {
		fmt.Fprintf(progress, "%s: first look at %s\n", m.name, p.name)
		s, err := p.train(ctx, o, m)
		if errors.Is(err, errAbsent) {
			c.Rows = append(c.Rows, trainRow{Name: p.name, Absent: err.Error()})
			continue
		}
		if err != nil {
			return c, err
		}
		seen = append(seen, s)
		contenders = append(contenders, p.contender(o, m))
		c.Rows = append(c.Rows, trainRow{Name: p.name})
	}
	dir, err := os.MkdirTemp("", "bench-train")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(progress, "%s: tuning for %v\n", m.name, o.tuning)
	tuned, err := tune(ctx, o, m, filepath.Join(dir, "tune.json"))
	if err != nil {
		return c, err
	}
	contenders = append(contenders, tuned.contender(o, m), pytorch(o, seen[0]))
	c.Rows = append(c.Rows, trainRow{Name: tuned.name}, trainRow{Name: peerName})
	for round := range o.rounds {
		for i := range contenders {
			turn := contenders[(i+round)%len(contenders)]
			r := &c.Rows[slices.IndexFunc(c.Rows, func(r trainRow) bool { return r.Name == turn.name })]
			if r.Absent != "" {
				continue
			}
			fmt.Fprintf(progress, "%s: round %d of %d: %s", m.name, round+1, o.rounds, turn.name)
			got, err := turn.turn(ctx)
			if errors.Is(err, errAbsent) {
				fmt.Fprintln(progress)
				r.Absent = err.Error()
				continue
			}
			if err != nil {
				return c, err
			}
			fmt.Fprintf(progress, ", %.0f tokens/s\n", got.TokensPerSecond)
			r.Turns = append(r.Turns, got)
		}
	}
	c.sumUp()
	return c, nil
}

// sumUp computes the figures that follow from the turns.
func (c *comparison) sumUp() {
	turnsOf := func(name string) []trainTurn {
		return c.Rows[slices.IndexFunc(c.Rows, func(r trainRow) bool { return r.Name == name })].Turns
	}
	beside, usual := turnsOf(peerName), turnsOf(baseline)
	for i := range c.Rows {
		r := &c.Rows[i]
		if len(r.Turns) == 0 {
			continue
		}
		r.Tokens = medianOf(r.Turns, func(t trainTurn) float64 { return t.TokensPerSecond })
		r.MFU = medianOf(r.Turns, func(t trainTurn) float64 { return t.MFU })
		r.Best = fastest(r.Turns)
		for _, t := range r.Turns {
			r.PeakBytes = max(r.PeakBytes, t.PeakBytes)
		}
		if gains := ratiosOf(r.Turns, usual); gains != nil {
			r.Gain = stats.Median(gains)
		}
		ratios := ratiosOf(r.Turns, beside)
		if ratios == nil {
			continue
		}
		var memory uint64
		for _, t := range beside {
			memory = max(memory, t.PeakBytes)
		}
		interval := stats.MedianInterval(ratios)
		r.Ratio, r.Interval, r.BestRatio = stats.Median(ratios), &interval, r.Best/fastest(beside)
		r.Memory = float64(r.PeakBytes) / float64(memory)
	}
}

// ratiosOf returns the ratios of each round, nil if the contenders did not have the same rounds.
func ratiosOf(turns, others []trainTurn) []float64 {
	if len(turns) != len(others) {
		return nil
	}
	ratios := make([]float64, len(turns))
	for round, t := range turns {
		ratios[round] = t.TokensPerSecond / others[round].TokensPerSecond
	}
	return ratios
}

func fastest(turns []trainTurn) float64 {
	best := 0.
	for _, t := range turns {
		best = max(best, t.Best)
	}
	return best
}

func medianOf(turns []trainTurn, of func(trainTurn) float64) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = of(t)
	}
	return stats.Median(values)
}

func (r trainReport) writeTable(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d rounds of %d steps\n\n", r.Machine, r.Rounds, r.Steps)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "model\tcontender\ttokens/s\t× flagos\t× pytorch\tinterval\tbest tokens/s\t× pytorch\tMFU\tMiB\t× pytorch\t")
	var notes []string
	for _, c := range r.Models {
		for _, row := range c.Rows {
			if row.Absent != "" {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", c.Model, row.Name, row.Absent))
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%s\t%s\t%.0f\t%s\t%s\t%d\t%s\t\n", c.Model, row.Name, row.Tokens, figure("%.2f", row.Gain), figure("%.2f", row.Ratio), row.interval(),
				row.Best, figure("%.2f", row.BestRatio), figure("%.2f", row.MFU), row.PeakBytes>>20, figure("%.2f", row.Memory))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// interval returns the text of the interval of the ratio.
func (r trainRow) interval() string {
	if r.Interval == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f to %.2f (%.0f %%)", r.Interval.Low, r.Interval.High, 100*r.Interval.Confidence)
}
