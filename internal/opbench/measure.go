package opbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
)

// Settings configure Measure; the zero value has defaults.
type Settings struct {
	Repeat int           // samples of each impl; 0 is 20
	Budget time.Duration // after which an impl gets no further sample; 0 is two seconds
}

// Result is the outcome of one impl for a Case.
type Result struct {
	Impl    string
	Kind    opregistry.Kind
	Samples []time.Duration // of one call; nil when the impl did not run
	Reason  string          // why it did not
}

// sample is the shortest time that is measured; faster calls are repeated within a sample.
const sample = 200 * time.Microsecond

// Measure runs a case on impls of its op by turns and returns a Result for each. It looks up impls
// of the forward op of a pair in the snapshot. When ctx ends, it returns the samples made so far.
func Measure(ctx context.Context, c Case, snap *opregistry.Snapshot, impls []opregistry.Entry, ex *opregistry.Exec, s Settings) []Result {
	if s.Repeat == 0 {
		s.Repeat = 20
	}
	if s.Budget == 0 {
		s.Budget = 2 * time.Second
	}
	all := make([]*Side, len(impls))
	for i := range impls {
		if all[i] = c.Side(Elapsed(), snap, &impls[i], ex); ctx.Err() != nil {
			all[i].Err = ctx.Err()
		}
		all[i].WarmUp(sample)
	}
	left := slices.Clone(all)
	for n := 0; n < s.Repeat && ctx.Err() == nil; n++ {
		left = slices.DeleteFunc(left, func(side *Side) bool { return side.Err != nil || side.Spent >= s.Budget })
		if len(left) == 0 {
			break
		}
		Round(n, left)
	}
	results := make([]Result, len(impls))
	for i, side := range all {
		results[i] = Result{Impl: impls[i].ID, Kind: impls[i].Kind, Samples: side.Samples}
		if side.Err != nil {
			results[i].Reason, results[i].Samples = side.Err.Error(), nil
		}
	}
	return results
}

// Side returns a side that makes the call of the case on an impl, and returns when it is done.
// Before each turn it runs the forward op of a pair on the same impl, whose saved state the case
// reads. It has an error if the impl does not serve the case.
func (c Case) Side(now Clock, snap *opregistry.Snapshot, impl *opregistry.Entry, ex *opregistry.Exec) *Side {
	s := NewSide(now, func() error { return c.run(impl, ex) })
	if impl.Available != nil {
		if err := impl.Available(); err != nil {
			s.Err = fmt.Errorf("not available: %w", err)
			return s
		}
	}
	s.Err = c.Call.Served(&impl.Support)
	if c.forward == nil {
		return s
	}
	op, _ := snap.Index(c.forward.Op.Name())
	i := slices.IndexFunc(snap.Impls(op), func(f opregistry.Entry) bool { return f.ID == impl.ID })
	s.Before = func() error {
		if i < 0 {
			return fmt.Errorf("the impl does not have %s, which comes before", c.forward.Op.Name())
		}
		return c.forward.run(&snap.Impls(op)[i], ex)
	}
	return s
}

// run makes the call on an impl and waits until a device has done it.
func (c *Case) run(impl *opregistry.Entry, ex *opregistry.Exec) error {
	if err := c.Call.Run(impl.Run, ex); err != nil || c.device == nil {
		return err
	}
	return wait(c.device)
}

// wait returns when the default stream of the current device has done its work.
func wait(b device.Backend) error {
	e, err := b.CreateEvent()
	if err != nil {
		return err
	}
	if err = b.RecordEvent(e, device.DefaultStream); err == nil {
		err = b.SyncEvent(e)
	}
	return errors.Join(err, b.FreeEvent(e))
}
