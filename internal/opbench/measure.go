package opbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// Settings configure Measure; the zero value has defaults.
type Settings struct {
	Repeat int           // samples of each impl; 0 is 20
	Budget time.Duration // after which an impl gets no further sample; 0 is two seconds
}

// Result is the outcome of one impl for a Case.
type Result struct {
	Op, Shape string
	Impl      string
	Kind      opregistry.Kind
	Samples   []time.Duration // of one call; nil when the impl did not run
	Reason    string          // why it did not
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
	results := make([]Result, len(impls))
	calls := make([]int, len(impls)) // within a sample
	spent := make([]time.Duration, len(impls))
	for i, e := range impls {
		results[i] = Result{Op: c.Op.Name(), Shape: c.Shape, Impl: e.ID, Kind: e.Kind}
		if ctx.Err() != nil {
			results[i].Reason = ctx.Err().Error()
			continue
		}
		first, err := warmUp(c, snap, e, ex)
		if err != nil {
			results[i].Reason = err.Error()
			continue
		}
		spent[i] = first
		calls[i] = 1 + int(sample/max(first, time.Nanosecond))
	}
	for range s.Repeat {
		for i, e := range impls {
			if ctx.Err() != nil {
				return results
			}
			if calls[i] == 0 || len(results[i].Samples) > 0 && spent[i] >= s.Budget {
				continue
			}
			if err := prepare(c, snap, e, ex); err != nil {
				results[i].Reason, results[i].Samples, calls[i] = err.Error(), nil, 0
				continue
			}
			begin := time.Now()
			err := repeat(c, e, ex, calls[i])
			took := time.Since(begin)
			if err != nil {
				results[i].Reason, results[i].Samples, calls[i] = err.Error(), nil, 0
				continue
			}
			spent[i] += took
			results[i].Samples = append(results[i].Samples, took/time.Duration(calls[i]))
		}
	}
	return results
}

// warmUp makes the first calls of an impl and returns the time of a later one.
func warmUp(c Case, snap *opregistry.Snapshot, e opregistry.Entry, ex *opregistry.Exec) (time.Duration, error) {
	if e.Available != nil {
		if err := e.Available(); err != nil {
			return 0, fmt.Errorf("not available: %w", err)
		}
	}
	if err := c.serves(&e.Support); err != nil {
		return 0, err
	}
	if err := prepare(c, snap, e, ex); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := repeat(c, e, ex, 1); err != nil {
		return 0, err
	}
	if took := time.Since(begin); took > sample {
		return took, nil
	}
	begin = time.Now()
	err := repeat(c, e, ex, 1)
	return time.Since(begin), err
}

// prepare runs the forward op of a pair on the same impl, whose saved state the case reads.
func prepare(c Case, snap *opregistry.Snapshot, e opregistry.Entry, ex *opregistry.Exec) error {
	if c.forward == nil {
		return nil
	}
	op, _ := snap.Index(c.forward.Op.Name())
	i := slices.IndexFunc(snap.Impls(op), func(f opregistry.Entry) bool { return f.ID == e.ID })
	if i < 0 {
		return fmt.Errorf("the impl does not have %s, which comes before", c.forward.Op.Name())
	}
	return repeat(*c.forward, snap.Impls(op)[i], ex, 1)
}

// repeat calls an impl. A panic is an error, as it is under an op manager.
func repeat(c Case, e opregistry.Entry, ex *opregistry.Exec, calls int) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	for range calls {
		if err := c.call(ex, e.Run); err != nil {
			return err
		}
	}
	return nil
}
