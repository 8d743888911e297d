package opmanager_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// withCanary prefers flagos and tries vendor.acme for a share of the calls of an op.
func withCanary(op string, fraction float64, calls int) func(*oppolicy.Policy) {
	return func(p *oppolicy.Policy) {
		p.Prefer = opregistry.KindFlagos
		p.Canary = []oppolicy.Canary{{Op: op, Impl: oppolicy.Token{Kind: opregistry.KindVendor, Vendor: "acme"}, Fraction: fraction, Calls: calls}}
	}
}

// slowly serves a call after some work.
func slowly(a addArgs) error {
	x := uint64(1)
	for range 200_000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	in, out := tensor.Data[float32](a.In), tensor.Data[float32](a.Out)
	for i := range in {
		out[i] = in[i] + 1 + 0*float32(x)
	}
	return nil
}

// servedBy makes calls in steps and returns which of them the canary served.
func servedBy(t *testing.T, fraction float64, seed int64, from, steps, calls int) (served []bool) {
	t.Helper()
	f := newManager(t, withCanary("add_one", fraction, 1<<30), opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	for step := from; step < from+steps; step++ {
		f.BeginStep(seed, step)
		for range calls {
			before := f.vendor.calls
			require.NoError(t, bound.Call(newArgs(t)))
			served = append(served, f.vendor.calls > before)
		}
	}
	return served
}

// A canary is given the share of the calls that the policy says, the same ones with the same seed,
// also when a run begins at a later step.
func TestCanaryShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	for range 12 {
		fraction, seed := 0.5*(1-rng.Float64()), rng.Int64()
		const steps, calls = 200, 10
		all := servedBy(t, fraction, seed, 1, steps, calls)
		n := 0
		for _, yes := range all {
			if yes {
				n++
			}
		}
		assert.InDelta(t, fraction, float64(n)/(steps*calls), 0.05, "fraction %v, seed %d", fraction, seed) // > 4 deviations
		assert.Equal(t, all, servedBy(t, fraction, seed, 1, steps, calls), "again")
		assert.Equal(t, all[100*calls:], servedBy(t, fraction, seed, 101, steps-100, calls), "resumed")
		if fraction > 0.05 {
			assert.NotEqual(t, all, servedBy(t, fraction, seed+1, 1, steps, calls), "another seed")
		}
	}
}

func canaryOf(f fixtureManager) opmanager.Canary {
	for _, c := range f.Canaries() {
		return c
	}
	return opmanager.Canary{}
}

// changes returns the states of canaries that a Manager reported.
func changes(f fixtureManager) (states []opmanager.CanaryState) {
	f.events.mu.Lock()
	defer f.events.mu.Unlock()
	for _, e := range f.events.all {
		if c, ok := e.(opmanager.CanaryChanged); ok {
			states = append(states, c.Canary.State)
		}
	}
	return states
}

// A canary that is right and not slower takes the place of the present impl, one that is slower is
// withdrawn.
func TestCanaryPromoted(t *testing.T) {
	for _, tt := range []struct {
		state          opmanager.CanaryState
		vendor, flagos func(addArgs) error
		serves         string
	}{
		{opmanager.CanaryPromoted, nil, slowly, "vendor.acme"},
		{opmanager.CanaryWithdrawn, slowly, nil, "default.flagos"},
	} {
		t.Run(string(tt.state), func(t *testing.T) {
			for _, family := range []bool{false, true} {
				op := "add_one"
				if family {
					op = "pair_fwd"
				}
				f := newManager(t, withCanary(op, 0.5, 8), opmanager.Settings{})
				f.vendor.do, f.flagos.do = tt.vendor, tt.flagos
				for range 64 {
					if !family {
						require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
						continue
					}
					a := newPair(t)
					require.NoError(t, opmanager.MustBind(f.Manager, pairFwd).Call(a))
					owner := a.Saved.Owner()
					require.NoError(t, opmanager.MustBind(f.Manager, pairBwd).Call(a))
					assert.Equal(t, owner, a.Saved.Owner())
				}
				c := canaryOf(f)
				assert.Equal(t, tt.state, c.State, c)
				assert.GreaterOrEqual(t, c.Right, 8)
				assert.Contains(t, c.String(), "times as long as default.flagos")
				assert.Equal(t, []opmanager.CanaryState{opmanager.CanaryTrying, tt.state}, changes(f))
				for _, name := range []string{op, "pair_bwd"} {
					if !family && name == "pair_bwd" {
						continue
					}
					e, err := f.Explain(name)
					require.NoError(t, err)
					assert.Equal(t, tt.serves, e.Selected)
					assert.Contains(t, e.String(), "canary: vendor.acme for 50 % of the calls (the program): "+string(tt.state))
				}
			}
		})
	}
}

// The result of a canary that is wrong is not used, and the canary is in quarantine.
func TestCanaryWrong(t *testing.T) {
	f := newManager(t, withCanary("add_one", 0.3, 50), opmanager.Settings{})
	wrong := 0
	f.KeepWrong(func(e opmanager.VerificationFailed) string {
		wrong++
		return "case.rec"
	})
	f.vendor.do = wrongFrom(f.vendor, 4)
	bound := opmanager.MustBind(f.Manager, addOne)
	for i := range 100 {
		a := newArgs(t)
		if i%2 == 1 {
			a.Out = a.In // in place
		}
		require.NoError(t, bound.Call(a))
		require.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	}
	c := canaryOf(f)
	assert.Equal(t, opmanager.CanaryWithdrawn, c.State)
	assert.True(t, c.Wrong)
	assert.Contains(t, c.Reason, `differs from the result of the reference`)
	assert.Contains(t, c.Reason, "primus ops replay case.rec")
	assert.Equal(t, 1, wrong)
	require.Len(t, f.Quarantines(), 1)
	assert.Equal(t, 5, f.vendor.calls)

	f.vendor.do = nil
	f.ClearQuarantine("add_one", "")
	for range 20 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	assert.Equal(t, opmanager.CanaryTrying, canaryOf(f).State, "it is tried again")
}

// A trial that has ended stays so in a Manager that it is restored in, and only there where the
// policy has the same trial.
func TestCanaryRestored(t *testing.T) {
	share := withCanary("add_one", 0.5, 8)
	for _, tt := range []struct {
		name   string
		ended  opmanager.Canary
		policy func(*oppolicy.Policy)
		state  opmanager.CanaryState
		serves string
	}{
		{"promoted", opmanager.Canary{State: opmanager.CanaryPromoted}, share, opmanager.CanaryPromoted, "vendor.acme"},
		{"slower", opmanager.Canary{State: opmanager.CanaryWithdrawn}, share, opmanager.CanaryWithdrawn, "default.flagos"},
		{"wrong", opmanager.Canary{State: opmanager.CanaryWithdrawn, Wrong: true}, share, opmanager.CanaryWithdrawn, "default.flagos"},
		{"has not ended", opmanager.Canary{State: opmanager.CanaryTrying}, share, opmanager.CanaryTrying, ""},
		{"unknown state", opmanager.Canary{State: "asleep"}, share, opmanager.CanaryTrying, ""},
		{"another impl", opmanager.Canary{State: opmanager.CanaryPromoted, Impl: "vendor.other"}, share, opmanager.CanaryTrying, ""},
		{"unknown op", opmanager.Canary{State: opmanager.CanaryPromoted, Op: "add_two"}, share, opmanager.CanaryTrying, ""},
		{"another share", opmanager.Canary{State: opmanager.CanaryPromoted}, withCanary("add_one", 0.25, 8), opmanager.CanaryTrying, ""},
		{"another number of calls", opmanager.Canary{State: opmanager.CanaryPromoted}, withCanary("add_one", 0.5, 9), opmanager.CanaryTrying, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newManager(t, tt.policy, opmanager.Settings{})
			was := tt.ended
			was.Op, was.Impl = cmp.Or(was.Op, "add_one"), cmp.Or(was.Impl, "vendor.acme")
			was.Fraction, was.Of, was.Calls, was.Right, was.Ratio, was.Reason = 0.5, 8, 9, 8, 0.5, "as it was"
			f.RestoreCanaries([]opmanager.Canary{was})
			bound := opmanager.MustBind(f.Manager, addOne)
			for range 32 {
				require.NoError(t, bound.Call(newArgs(t)))
			}
			now := canaryOf(f)
			if tt.serves == "" {
				assert.NotEqual(t, "as it was", now.Reason)
				assert.Positive(t, now.Calls)
				return
			}
			was.Source = now.Source
			assert.Equal(t, was, now)
			assert.Equal(t, []opmanager.CanaryState{tt.state}, changes(f))
			if tt.serves == "vendor.acme" {
				assert.Equal(t, 32, f.vendor.calls)
			} else {
				assert.Zero(t, f.vendor.calls)
			}
			assert.Len(t, f.Quarantines(), map[bool]int{true: 1}[was.Wrong])
			f.ClearQuarantine("", "")
			require.NoError(t, bound.Call(newArgs(t)))
			if tt.state == opmanager.CanaryWithdrawn {
				assert.Equal(t, opmanager.CanaryTrying, canaryOf(f).State, "it is tried again")
			}
		})
	}
}

// Where the present impl is wrong and the reference agrees with the canary, the canary stays.
func TestCanaryIsJudgedByTheReference(t *testing.T) {
	f := newManager(t, withCanary("add_one", 0.5, 1000), opmanager.Settings{})
	f.flagos.do = wrongAt(0, 77)
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 20 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	assert.Equal(t, opmanager.CanaryTrying, canaryOf(f).State)
	assert.Positive(t, canaryOf(f).Right)
}

// A wrong backward call cannot be served by another impl. The pair is withdrawn, and the present
// impl serves the next one.
func TestCanaryPairWrong(t *testing.T) {
	f := newManager(t, withCanary("pair_fwd", 0.5, 1000), opmanager.Settings{})
	failures := 0
	for range 40 {
		a := newPair(t)
		require.NoError(t, opmanager.MustBind(f.Manager, pairFwd).Call(a))
		f.vendor.do = wrongAt(0, 9)
		err := opmanager.MustBind(f.Manager, pairBwd).Call(a)
		f.vendor.do = nil
		if err != nil {
			require.ErrorIs(t, err, opmanager.ErrSavedState)
			failures++
		}
	}
	assert.Equal(t, 1, failures)
	assert.Equal(t, opmanager.CanaryWithdrawn, canaryOf(f).State)
}

// A canary that fails is withdrawn, and the present impl serves the call from operands that are as
// they were; one that declines every call is withdrawn, too.
func TestCanaryFails(t *testing.T) {
	for name, do := range map[string]func(addArgs) error{"halfway": halfWay, "panics": panics, "declines": declines} {
		t.Run(name, func(t *testing.T) {
			f := newManager(t, withCanary("add_one", 0.5, 5), opmanager.Settings{})
			f.vendor.do = do
			for range 40 {
				a := newArgs(t)
				a.Out = a.In
				require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
				require.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
			}
			assert.Equal(t, opmanager.CanaryWithdrawn, canaryOf(f).State, canaryOf(f))
			e, err := f.Explain("add_one")
			require.NoError(t, err)
			assert.Equal(t, "default.flagos", e.Selected)
		})
	}
}

// The policy says why a canary has no effect.
func TestCanaryWithoutEffect(t *testing.T) {
	for _, tt := range []struct {
		edit func(*oppolicy.Policy)
		want string
	}{
		{func(p *oppolicy.Policy) { p.Deny = []string{"acme"} }, "vendor acme is denied"},
		{func(p *oppolicy.Policy) { p.Canary[0].Impl = oppolicy.Token{Impl: "vendor.other"} }, "no loaded source has impl:vendor.other for add_one"},
		{func(p *oppolicy.Policy) {
			p.PerOp = []oppolicy.OpRule{{Pattern: "add_one", Order: []oppolicy.Token{p.Canary[0].Impl}}}
		}, "no other impl serves the op"},
	} {
		f := newManager(t, func(p *oppolicy.Policy) {
			withCanary("add_one", 0.5, 5)(p)
			tt.edit(p)
		}, opmanager.Settings{})
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
		e, err := f.Explain("add_one")
		require.NoError(t, err)
		assert.Contains(t, e.String(), "has no effect: ")
		assert.Contains(t, e.String(), tt.want)
	}
}

// A canary of an op that nobody registers is listed, and warned of once.
func TestCanaryOfUnknownOp(t *testing.T) {
	f := newManager(t, withCanary("add_on", 0.5, 5), opmanager.Settings{})
	all := f.Canaries()
	require.Len(t, all, 1)
	assert.Contains(t, all[0].String(), "has no effect: no loaded source registers the op")
	require.Len(t, f.Warnings(), 1)
	assert.Contains(t, f.Warnings()[0], `names op "add_on", which no loaded source registers`)
}

// An order that does not name the canary does not keep it from its share of the calls.
func TestCanaryOutsideOfTheOrder(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		withCanary("add_one", 0.5, 1000)(p)
		p.PerOp = []oppolicy.OpRule{{Pattern: "add_*", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}
	}, opmanager.Settings{})
	for range 20 {
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	}
	assert.Positive(t, canaryOf(f).Right)
	assert.Zero(t, f.flagos.calls)
	assert.Equal(t, "reference.go", canaryOf(f).Beside)
}

// A policy that is strict and has a canary is refused.
func TestCanaryUnderStrict(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	p := f.Policy()
	withCanary("add_one", 0.1, 0)(&p)
	require.NoError(t, setPolicy(f.Manager, p))
	p.Strict = true
	assert.ErrorContains(t, setPolicy(f.Manager, p), "strict (the program) and canary (the program) are given")
}

// Canaries are safe for use by several goroutines, while the policy changes.
func TestCanaryHammer(t *testing.T) {
	f := newManager(t, withCanary("pair_fwd", 0.5, 20), opmanager.Settings{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			fwd, bwd := opmanager.MustBind(f.Layer(g), pairFwd), opmanager.MustBind(f.Layer(g), pairBwd)
			for i := range 100 {
				f.BeginStep(1, i)
				a := newPair(t)
				if err := errors.Join(fwd.Call(a), bwd.Call(a)); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					f.Canaries()
					f.ExplainAll()
				}
			}
		})
	}
	for i := range 20 {
		p := f.Policy()
		withCanary("pair_fwd", 0.25+float64(i)/100, 20)(&p)
		if err := setPolicy(f.Manager, p); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// Each canary of a policy has one trial, whatever other values of the policy change.
func TestCanaryOutlivesPolicies(t *testing.T) {
	f := newManager(t, withCanary("add_one", 0.5, 1000), opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 30 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	before := canaryOf(f)
	require.Positive(t, before.Right)
	p := f.Policy()
	p.ProtectInPlace = true
	require.NoError(t, setPolicy(f.Manager, p))
	assert.Equal(t, before.Right, canaryOf(f).Right)
	p.Canary = nil
	require.NoError(t, setPolicy(f.Manager, p))
	assert.Empty(t, f.Canaries())
	assert.Equal(t, []opmanager.CanaryState{opmanager.CanaryTrying}, slices.Compact(changes(f)), fmt.Sprint(before))
}

// What a policy tries is among its warnings and differences.
func TestCanaryIsReported(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Prefer = opregistry.KindFlagos }, opmanager.Settings{})
	p := f.Policy()
	withCanary("pair_bwd", 0.25, 5)(&p)
	tried := f.With(p)
	defer tried.Close()
	assert.Empty(t, tried.Warnings())
	changes, err := opmanager.Compare(f.Manager, tried, nil)
	require.NoError(t, err)
	require.Len(t, changes, 2, "the canary is for the whole family")
	assert.Equal(t, opmanager.Difference{
		Op: "pair_fwd", From: "default.flagos", To: "default.flagos", Reason: "canary vendor.acme for 25 % of the calls",
	}, changes[0])
	back, err := opmanager.Compare(tried, f.Manager, []string{"pair_bwd"})
	require.NoError(t, err)
	require.Len(t, back, 1)
	assert.Equal(t, "no canary", back[0].Reason)
	p.Deny = []string{"acme"}
	denied := f.With(p)
	defer denied.Close()
	require.Len(t, denied.Warnings(), 1)
	assert.Contains(t, denied.Warnings()[0], `policy: the canary of op "pair_fwd" has no effect: the program: vendor acme is denied`)
}
