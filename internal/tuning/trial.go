package tuning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Trial says how much faster whole steps are with the choices of a File than without: the time
// without them by the time with them.
type Trial struct {
	Ratio float64 `json:"ratio"` // the median of the pairs
	Low   float64 `json:"low"`   // of the interval of the median
	High  float64 `json:"high"`
	Pairs int     `json:"pairs"` // of a step with and one without
}

// Bounds of a trial.
const (
	MinPairs  = 8
	maxPairs  = 41
	maxTrials = 3 // of all choices, of half of them, of half of those
)

// Faster reports whether steps are clearly faster with the choices.
func (t *Trial) Faster() bool { return t.Low > 1 }

// Confirm keeps the choices with which whole steps are clearly faster, and drops the others. A call
// that is measured alone finds its operands in the caches and the threads of its library awake, so
// that the fastest impl of each call need not make the fastest step. If all choices together do not
// pass, those that gain most are tried alone. step makes a step with some choices, or without any
// if they are nil, and returns how long it took. The trials take about as long as the budget, but
// have MinPairs pairs at least.
func (f *File) Confirm(ctx context.Context, budget time.Duration, families func(op string) string, step func(context.Context, *oppolicy.Tuning) (time.Duration, error)) error {
	end := time.Now().Add(budget)
	for left := maxTrials; left > 0; left-- {
		kept := f.chosen(families)
		if len(kept) == 0 {
			return nil
		}
		trial, err := try(ctx, f.Tuning("trial", families), time.Until(end)/time.Duration(left), step)
		if err != nil {
			return err
		}
		f.Trial = trial
		if trial.Faster() {
			return nil
		}
		if left > 1 {
			kept = kept[len(kept)/2:]
		}
		for _, e := range kept {
			e.Dropped = true
		}
	}
	return nil
}

// chosen returns the entries that have another impl with the choices than without, those that gain
// most first.
func (f *File) chosen(families func(op string) string) []*Entry {
	t := f.Tuning("trial", families)
	var all []*Entry
	for i := range f.Entries {
		e := &f.Entries[i]
		if !e.Dropped && (e.Impl != e.Over || t.Ops[e.Op].Impl != e.Over) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *Entry) int { return cmp.Compare(b.gain(), a.gain()) })
	return all
}

// gain is the part of the time of all calls that the choice saves.
func (e *Entry) gain() float64 { return e.Share * (1 - 1/max(e.Ratio, 1)) }

// try makes steps with the choices and without them by turns.
func try(ctx context.Context, t *oppolicy.Tuning, budget time.Duration, step func(context.Context, *oppolicy.Tuning) (time.Duration, error)) (*Trial, error) {
	if _, err := step(ctx, t); err != nil { // libraries prepare shapes that they see first
		return nil, err
	}
	end := time.Now().Add(budget)
	var ratios []float64
	for n := range maxPairs {
		var took [2]time.Duration // without and with
		for k := range took {
			i, with := (n+k)%len(took), (*oppolicy.Tuning)(nil)
			if i == 1 {
				with = t
			}
			var err error
			if took[i], err = step(ctx, with); err != nil {
				return nil, err
			}
		}
		ratios = append(ratios, took[0].Seconds()/max(took[1], 1).Seconds())
		if n+1 < MinPairs {
			continue
		}
		if i := stats.MedianInterval(ratios); i.Low > 1 || i.High < 1 || time.Now().After(end) {
			break
		}
	}
	i := stats.MedianInterval(ratios)
	return &Trial{Ratio: stats.Median(ratios), Low: i.Low, High: i.High, Pairs: len(ratios)}, nil
}
