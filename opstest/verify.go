package opstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Failure is a requirement that an impl did not meet.
type Failure struct {
	Case   string `json:"case"` // the dtype, followed by what is special about the call
	Reason string `json:"reason"`
}

func newFailure(name, format string, args []any) Failure {
	return Failure{Case: name, Reason: strings.TrimPrefix(fmt.Sprintf(format, args...), "opstest: ")}
}

// Result is the outcome for an impl in the cases of one storage dtype.
type Result struct {
	Op       string       `json:"op"`
	Impl     string       `json:"impl_id"`
	DType    tensor.DType `json:"dtype"`
	Served   int          `json:"served"`   // cases that it passed
	Declined int          `json:"declined"` // cases that it declined
	Sampled  int          `json:"sampled"`  // cases of which only parts were compared, and invariants of the whole
	Seconds  float64      `json:"seconds"`  // that the cases took
	Failures []Failure    `json:"failures,omitempty"`
}

// Status returns one word for a Result: "fail" when a case failed, "pass" when some were served,
// "unsupported" when all were declined.
func (r Result) Status() string {
	switch {
	case len(r.Failures) > 0:
		return "fail"
	case r.Served > 0:
		return "pass"
	default:
		return "unsupported"
	}
}

// Compared says which values of the results were compared with those of the reference.
func (r Result) Compared() string {
	switch {
	case r.Served == 0 && len(r.Failures) == 0:
		return "none"
	case r.Sampled == 0:
		return "all values"
	}
	return fmt.Sprintf("all values; in %d cases samples and invariants", r.Sampled)
}

// Verify is Run outside a Go test: it runs impl in every case of its op and returns a Result for
// each storage dtype. It returns an error when it cannot begin: the kit has no cases of the op, or
// oracle belongs to another op.
func (k Kit) Verify(impl, oracle opregistry.Impl, opts ...Option) (results []Result, err error) {
	s, err := k.comparison(impl, oracle)
	if err != nil {
		return nil, err
	}
	cfg := newConfig(opts)
	for _, d := range cfg.dtypes {
		one := *cfg
		one.dtypes = []tensor.DType{d}
		begin, r := time.Now(), &record{}
		res := Result{Op: impl.Op.Name(), Impl: impl.ID, DType: d}
		func() {
			defer func() {
				if cause := recover(); cause != nil && cause != any(ended{r}) {
					panic(cause)
				}
			}()
			done := s.run(r, impl, oracle, &one)
			res.Served, res.Declined, res.Sampled = len(done.served), done.declined, done.sampled
		}()
		res.Failures, res.Seconds = r.failures, time.Since(begin).Seconds()
		results = append(results, res)
	}
	return results, nil
}

// Selection says which impls VerifyAll runs, and who hears of it.
type Selection struct {
	Wants     func(op string, e opregistry.Entry) bool
	Available func(op string, e opregistry.Entry) bool // of impls that are wanted
	Place     func(opregistry.Impl) opregistry.Impl    // makes an impl take operands in host memory; nil if it does
	Begin     func(op, impl string)                    // called before each impl
	Skip      func(op, impl, reason string)            // called for impls that are wanted and cannot run
}

// VerifyAll compares impls of a snapshot with the reference of their op. It returns the error of
// ctx when that ends.
func (k Kit) VerifyAll(ctx context.Context, snap *opregistry.Snapshot, s Selection, opts ...Option) ([]Result, error) {
	results := []Result{}
	for i, op := range snap.Ops() {
		entries := snap.Impls(i)
		oracle := slices.IndexFunc(entries, func(e opregistry.Entry) bool { return e.Kind == opregistry.KindReference })
		for _, e := range entries {
			switch {
			case !s.Wants(op.Name(), e):
				continue
			case !s.Available(op.Name(), e):
				s.Skip(op.Name(), e.ID, "is not available on this machine")
				continue
			case oracle < 0:
				s.Skip(op.Name(), e.ID, "has no reference to be compared with")
				continue
			}
			s.Begin(op.Name(), e.ID)
			found, err := k.verify(s.Place, snap, e, entries[oracle], opts)
			if err != nil {
				return nil, err
			}
			results = append(results, found...)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// verify compares a registered impl with its oracle.
func (k Kit) verify(place func(opregistry.Impl) opregistry.Impl, snap *opregistry.Snapshot, e, oracle opregistry.Entry, opts []Option) ([]Result, error) {
	if place == nil {
		place = func(impl opregistry.Impl) opregistry.Impl { return impl }
	}
	if forward, ok := forwardOf(snap, e); ok {
		opts = append([]Option{WithForward(place(forward))}, opts...)
	}
	if forward, ok := forwardOf(snap, oracle); ok {
		opts = append([]Option{WithOracleForward(forward)}, opts...)
	}
	return k.Verify(place(e.Impl), oracle.Impl, opts...)
}

// forwardOf returns the impl that writes the saved state which an impl reads.
func forwardOf(snap *opregistry.Snapshot, e opregistry.Entry) (opregistry.Impl, bool) {
	for _, src := range snap.Sources() {
		if src.Name == e.Source {
			return Forward(src, e.Impl)
		}
	}
	return opregistry.Impl{}, false
}

// AnyFailed reports whether a Result has failures.
func AnyFailed(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return len(r.Failures) > 0 })
}

// Forward returns the impl of src that writes the saved state which impl, of a backward op, reads.
// Pass it to WithForward.
func Forward(src opregistry.Source, impl opregistry.Impl) (opregistry.Impl, bool) {
	if impl.Op.Family() == "" || impl.Op.Forward() {
		return opregistry.Impl{}, false
	}
	return find(src, func(o opregistry.Impl) bool {
		return o.Op.Family() == impl.Op.Family() && o.Op.Forward() && o.ID == impl.ID
	})
}

// comparison returns the suite for two impls.
func (k Kit) comparison(impl, oracle opregistry.Impl) (*Suite, error) {
	if impl.Op == nil || impl.Op != oracle.Op {
		return nil, fmt.Errorf("opstest: got impl %q of %s and oracle %q of %s, want two impls of one op", impl.ID, opName(impl), oracle.ID, opName(oracle))
	}
	s := k.Suite(impl.Op)
	if s == nil {
		return nil, fmt.Errorf("opstest: op %q has no cases: it is not in the catalogue", impl.Op.Name())
	}
	return s, nil
}
