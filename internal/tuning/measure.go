package tuning

import (
	"context"
	"slices"
	"time"

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
	entry  *opregistry.Entry
	args   opregistry.Call
	repeat int // calls per sample
	times  []float64
}

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
		failed := map[*contender]bool{}
		for i := range all {
			one := all[(i+round)%len(all)]
			if err := ctx.Err(); err != nil {
				return e, err
			}
			if len(one.args.Updated()) > 0 {
				if one.args, err = c.call.Arguments(); err != nil {
					return e, err
				}
			}
			failed[one] = one.sample(set.Manager.Exec()) != nil
		}
		all = slices.DeleteFunc(all, func(one *contender) bool { return failed[one] })
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
	e.Usual, e.Over = ids[0], all[0].entry.ID
	e.decide(all)
	for _, one := range all {
		e.Times[one.entry.ID] = stats.Median(one.times)
	}
	return e, nil
}

// promising returns the usual impl and those that are not much slower than the fastest. It notes
// the times of the others.
func promising(all []*contender, times map[string]float64) []*contender {
	best := stats.Median(all[0].times)
	for _, one := range all {
		times[one.entry.ID] = stats.Median(one.times)
		best = min(best, times[one.entry.ID])
	}
	usual := all[0]
	return slices.DeleteFunc(all, func(one *contender) bool { return one != usual && times[one.entry.ID] > hopeless*best })
}

// newContender returns an impl with arguments of its own, nil if it does not serve the call.
func newContender(c *profiled, set Settings, id string) (*contender, error) {
	i, _ := set.Ops.Index(c.op)
	impls := set.Ops.Impls(i)
	k := slices.IndexFunc(impls, func(e opregistry.Entry) bool { return e.ID == id })
	if k < 0 {
		return nil, nil
	}
	args, err := c.call.Arguments()
	if err != nil {
		return nil, err
	}
	one := &contender{entry: &impls[k], args: args, repeat: 1}
	if saved := args.Saved(); saved != nil {
		saved.SetOwner(id)
	}
	x := set.Manager.Exec()
	if args.Served(&one.entry.Support) != nil || one.run(x) != nil {
		return nil, nil
	}
	begin := time.Now()
	if one.run(x) != nil {
		return nil, nil
	}
	if len(args.Updated()) == 0 {
		one.repeat += int(sampleTime / max(time.Since(begin), time.Nanosecond))
	}
	return one, nil
}

// run runs the impl. A panic is an error, as it is under an op manager.
func (o *contender) run(x *opregistry.Exec) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = opregistry.Unsupported("panic: %v", cause)
		}
	}()
	return o.args.Run(o.entry.Run, x)
}

// sample adds the time of a call, in milliseconds.
func (o *contender) sample(x *opregistry.Exec) error {
	begin := time.Now()
	for range o.repeat {
		if err := o.run(x); err != nil {
			return err
		}
	}
	o.times = append(o.times, 1e3*time.Since(begin).Seconds()/float64(o.repeat))
	return nil
}

// decide sets the choice from the samples so far and reports whether more would not change it.
func (e *Entry) decide(all []*contender) (clear bool) {
	usual := all[0]
	e.Samples, e.Impl, e.Ratio, e.Low, e.High, e.Clear = len(usual.times), usual.entry.ID, 1, 1, 1, true
	settled := true
	for _, one := range all[1:] {
		ratios := make([]float64, len(usual.times))
		for i := range ratios {
			ratios[i] = usual.times[i] / one.times[i]
		}
		ratio, interval := stats.Median(ratios), stats.MedianInterval(ratios)
		faster := interval.Low >= MinRatio && interval.Confidence >= 0.9
		slower := interval.High < MinRatio && interval.Confidence >= 0.9
		if !faster && !slower {
			settled = false
			e.Clear = false
		}
		if faster && ratio > e.Ratio {
			e.Impl, e.Ratio, e.Low, e.High = one.entry.ID, ratio, interval.Low, interval.High
		}
	}
	if e.Impl != usual.entry.ID {
		e.Clear = true
	}
	return settled
}
