package tuning

import (
	"context"
	"slices"
	"time"

	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// MinRatio is the gain below which the usual impl stays: that of the lower end of the interval of
// the median.
const MinRatio = 1.02

// Bounds of the measurements of one call.
const (
	minRounds  = 7
	maxRounds  = 41
	tryRounds  = 3                      // after which an impl that is much slower is left out
	hopeless   = 1.5                    // times the fastest
	sampleTime = 100 * time.Microsecond // faster calls are repeated within a sample
	smallShare = 0.002                  // of the time of all calls: not measured below it
)

// Settings say how calls are measured.
type Settings struct {
	Manager *opmanager.Manager // whose policy says which impls may serve calls, and which usually does
	Ops     *opregistry.Snapshot
	Budget  time.Duration // of all measurements
	// Progress is called before each call that is measured. It may be nil.
	Progress func(op, call string, n, of int)
}

// Choices returns the ops for which the policy leaves a choice: at least two impls besides the
// reference.
func Choices(m *opmanager.Manager) []string {
	var ops []string
	for _, e := range m.ExplainAll() {
		if len(candidates(e)) > 1 {
			ops = append(ops, e.Op)
		}
	}
	return ops
}

// candidates returns the impls that may serve an op, the usual one first, without the reference
// unless that is the usual one.
func candidates(e opmanager.Explanation) []string {
	var ids []string
	for i, s := range e.Order {
		if i == 0 || s.Kind != opregistry.KindReference {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Measure measures the calls of a profile, those that take most of the time first, until the budget
// is spent. When ctx ends it returns its error.
func Measure(ctx context.Context, p *Profile, set Settings) ([]Entry, error) {
	calls, total := p.sorted()
	end := time.Now().Add(set.Budget)
	remaining := total
	var entries []Entry
	for i, c := range calls {
		share := stats.Share(c.took.Seconds(), total.Seconds())
		if share < smallShare && i > 0 {
			break
		}
		left := time.Until(end)
		if left <= 0 {
			break
		}
		if set.Progress != nil {
			set.Progress(c.op, c.text, i+1, len(calls))
		}
		e, err := measure(ctx, c, set, time.Duration(float64(left)*stats.Share(c.took.Seconds(), remaining.Seconds())))
		remaining -= c.took
		if err != nil {
			return nil, err
		}
		if e.Impl != "" { // else no impl besides the reference serves it
			e.Share = share
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// contender is an impl that is measured.
type contender struct {
	*opbench.Side
	id string
}

// ms returns the median of the times in milliseconds.
func (c *contender) ms() float64 { return stats.SpreadOf(c.Samples).Median }

// measure measures one call on its impls by turns. One that fails is left out; the entry has no
// Impl if none is left.
func measure(ctx context.Context, c *profiled, set Settings, budget time.Duration) (Entry, error) {
	e := Entry{Op: c.op, Signature: Signature(c.signature), Call: c.text, Calls: c.count, Times: map[string]float64{}}
	explained, err := set.Manager.Explain(c.op)
	if err != nil {
		return e, err
	}
	var all []*contender // the one that would serve the call otherwise comes first
	ids := candidates(explained)
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return e, err
		}
		one, err := newContender(c, set, id)
		if err != nil {
			return e, err
		}
		if one != nil {
			all = append(all, one)
		}
	}
	end := time.Now().Add(budget)
	for round := range maxRounds {
		if err := ctx.Err(); err != nil {
			return e, err
		}
		sides := make([]*opbench.Side, len(all))
		for i, one := range all {
			sides[i] = one.Side
		}
		opbench.Round(round, sides)
		all = slices.DeleteFunc(all, func(one *contender) bool { return one.Err != nil })
		if len(all) == 0 {
			return e, nil
		}
		if round+1 == tryRounds {
			all = promising(all, e.Times)
		}
		if round+1 >= minRounds && (e.decide(all) || time.Now().After(end)) {
			break
		}
	}
	e.Usual, e.Over = ids[0], all[0].id
	e.decide(all)
	for _, one := range all {
		e.Times[one.id] = one.ms()
	}
	return e, nil
}

// promising returns the usual impl and those that are not much slower than the fastest. It notes
// the times of the others.
func promising(all []*contender, times map[string]float64) []*contender {
	best := all[0].ms()
	for _, one := range all {
		times[one.id] = one.ms()
		best = min(best, times[one.id])
	}
	usual := all[0]
	return slices.DeleteFunc(all, func(one *contender) bool { return one != usual && times[one.id] > hopeless*best })
}

// newContender returns an impl with arguments of its own, nil if it does not serve the call. What a
// call would change is made anew before each turn.
func newContender(c *profiled, set Settings, id string) (*contender, error) {
	i, _ := set.Ops.Index(c.op)
	impls := set.Ops.Impls(i)
	k := slices.IndexFunc(impls, func(e opregistry.Entry) bool { return e.ID == id })
	if k < 0 {
		return nil, nil
	}
	var args opregistry.Call
	renew := func() (err error) {
		if args, err = c.call.Arguments(); err != nil {
			return err
		}
		if saved := args.Saved(); saved != nil {
			saved.SetOwner(id)
		}
		return nil
	}
	if err := renew(); err != nil {
		return nil, err
	}
	if args.Served(&impls[k].Support) != nil {
		return nil, nil
	}
	one := &contender{opbench.NewSide(opbench.Elapsed(), func() error { return args.Run(impls[k].Run, set.Manager.Exec()) }), id}
	one.WarmUp(sampleTime)
	if len(args.Updated()) > 0 {
		one.Before, one.Calls = renew, 1
	}
	if one.Err != nil {
		return nil, nil
	}
	return one, nil
}

// decide sets the choice from the samples so far and reports whether more would not change it.
func (e *Entry) decide(all []*contender) (clear bool) {
	usual := all[0]
	e.Samples, e.Impl, e.Ratio, e.Low, e.High, e.Clear = len(usual.Samples), usual.id, 1, 1, 1, true
	settled := true
	for _, one := range all[1:] {
		ratios := make([]float64, len(usual.Samples))
		for i := range ratios {
			ratios[i] = usual.Samples[i].Seconds() / max(one.Samples[i], 1).Seconds()
		}
		ratio, interval := stats.Median(ratios), stats.MedianInterval(ratios)
		faster := interval.Low >= MinRatio && interval.Confidence >= 0.9
		slower := interval.High < MinRatio && interval.Confidence >= 0.9
		if !faster && !slower {
			settled = false
			e.Clear = false
		}
		if faster && ratio > e.Ratio {
			e.Impl, e.Ratio, e.Low, e.High = one.id, ratio, interval.Low, interval.High
		}
	}
	if e.Impl != usual.id {
		e.Clear = true
	}
	return settled
}
