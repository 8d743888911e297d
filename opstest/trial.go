package opstest

import (
	"errors"
	"iter"

	"github.com/primus-fl/primus/opregistry"
)

// Trial is the outcome of calls whose results were not checked.
type Trial struct {
	Served   int
	Declined int
	Failure  string // the first call that failed, and how
	Stray    string // the first call that wrote to what it may not, and where
}

// The largest numbers of calls that Try makes in one storage dtype.
const (
	trialServed   = 4
	trialDeclined = 16
)

// Try calls a subject in a few cases of its op in each storage dtype, spread over all cases, to see
// whether the calls return and write only to their operands. It does not check results. An op
// without cases has an empty trial.
func (k Kit) Try(s Subject, opts ...Option) (Trial, error) {
	if s.Impl.Op == nil {
		return Trial{}, errors.New("opstest: got an impl without an op")
	}
	cases := k.Suite(s.Impl.Op)
	if cases == nil {
		return Trial{}, nil
	}
	cfg := newConfig(opts)
	cfg.forward = s.Forward
	return cases.try(s.Impl, cfg)
}

func (s *Suite) try(impl opregistry.Impl, cfg *config) (Trial, error) {
	var found Trial
	r := &runner{Suite: s, cfg: cfg, serial: opregistry.NewExec(nil, 0)}
	if fault := faultOf(func(t T) { r.impl = function(t, s.op, impl) }); fault != "" {
		return found, errors.New("opstest: " + fault)
	}
	for _, d := range cfg.dtypes {
		all := s.cases(d)
		called, declined := 0, 0
		for i := range spread(len(all)) {
			if called == trialServed || declined == trialDeclined {
				break
			}
			name := d.String() + "/" + all[i].Name
			if cfg.progress != nil {
				cfg.progress(name)
			}
			stray, err := r.try(all[i])
			if errors.Is(err, opregistry.ErrUnsupported) {
				declined++
			} else {
				called++
			}
			found.add("case "+name+": ", stray, err)
		}
	}
	return found, nil
}

// add counts a call. It keeps the first fault of each kind.
func (t *Trial) add(where, stray string, err error) {
	switch {
	case errors.Is(err, opregistry.ErrUnsupported):
		t.Declined++
	case err == nil:
		t.Served++
	case t.Failure == "":
		t.Failure = where + err.Error()
	}
	if stray != "" && t.Stray == "" {
		t.Stray = where + stray
	}
}

// try calls the impl in one case and returns where it wrote without permission.
func (r *runner) try(c untypedCase) (stray string, err error) {
	var call *staged
	fault := faultOf(func(t T) {
		if call, err = r.ready(t, c, setting{}); err == nil {
			err = r.guard(r.serial, call.args)
			r.inspect(t, call, err)
		}
	})
	if call == nil && err == nil { // the forward impl failed
		return "", errors.New(fault)
	}
	return fault, err
}

// faultOf returns the first failure that f reports, "" when there is none.
func faultOf(f func(T)) string {
	r := &record{}
	r.Run("", f)
	if len(r.failures) == 0 {
		return ""
	}
	return r.failures[0].Reason
}

// spread yields the numbers below n in an order in which the first few lie far from each other.
func spread(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		step := n*5/8 + 1
		for gcd(step, n) != 1 {
			step++
		}
		for k := range n {
			if !yield(k * step % n) {
				return
			}
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
