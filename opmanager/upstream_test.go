package opmanager_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// What this file tests are defects of TransformerEngine-FL that this project has to
// stay free of. docs/explanation/dispatch.md lists them by number.

// served returns which impl of an op served how many calls.
func served(m *opmanager.Manager, op string) map[string]uint64 {
	calls := map[string]uint64{}
	for _, s := range m.Stats() {
		if s.Op == op && s.Calls > 0 {
			calls[s.ID] = s.Calls
		}
	}
	return calls
}

// B1: TE_FL_STRICT means what it is documented to mean, in every spelling.
func TestB1SpellingsOfStrict(t *testing.T) {
	for value, strict := range map[string]bool{
		"": false, "  ": false, "0": false, " 0": false, "0 ": false, "false": false, "No": false, "OFF": false,
		"1": true, " 1 ": true, "true": true, "YES": true, "on": true,
	} {
		t.Run(fmt.Sprintf("%q", value), func(t *testing.T) {
			policy, err := fromEnvironment(map[string]string{"TE_FL_STRICT": value, "TE_FL_PREFER": "vendor"})
			require.NoError(t, err)
			f := newManager(t, func(p *oppolicy.Policy) { *p = policy }, opmanager.Settings{})
			f.vendor.do = halfWay
			err = opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
			assert.Equal(t, strict, err != nil, "%v", err)
			assert.Equal(t, strict, f.flagos.calls == 0)
			assert.Equal(t, 1, f.vendor.calls)
		})
	}
}

// B2: strictness that the API asks for is in force, in the view that asks.
func TestB2StrictView(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = halfWay
	policy := f.Policy()
	policy.Strict = true
	view := f.With(policy)
	defer view.Close()
	require.ErrorContains(t, opmanager.MustBind(view, addOne).Call(newArgs(t)), "device lost")
	assert.Zero(t, f.flagos.calls)
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Equal(t, 1, f.flagos.calls)
}

// B3: an impl that fails is not run again in the same call, although it served the one before.
func TestB3FailedImplRunsOnce(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	require.NoError(t, bound.Call(newArgs(t)))
	f.vendor.do, f.flagos.do = halfWay, panics
	a := newArgs(t)
	require.NoError(t, bound.Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	assert.Equal(t, []int{2, 1, 1}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
}

// B10: a view's policy holds in every goroutine, so that the backward op of another
// one runs where the forward op ran.
func TestB10ViewsInOtherGoroutines(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	policy := f.Policy()
	policy.Prefer = opregistry.KindReference
	view := f.With(policy)
	defer view.Close()
	fwd, bwd, a := opmanager.MustBind(view, pairFwd), opmanager.MustBind(view, pairBwd), newPair(t)
	require.NoError(t, fwd.Call(a))
	done := make(chan error)
	go func() { done <- bwd.Call(a) }()
	require.NoError(t, <-done)
	assert.Equal(t, []int{0, 0, 2}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
}

// B11: a call under one policy leaves nothing behind for a call under another one
// that has begun before it and ends after it.
func TestB11CallsOfTwoPolicies(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	policy := f.Policy()
	policy.Prefer, policy.Deny = opregistry.KindFlagos, []string{"acme"}
	view := f.With(policy)
	defer view.Close()
	free, denying := opmanager.MustBind(f.Manager, addOne), opmanager.MustBind(view, addOne)
	f.flagos.do = func(addArgs) error {
		if err := free.Call(newArgs(t)); err != nil {
			return err
		}
		return errors.New("device lost")
	}
	for range 2 {
		require.NoError(t, denying.Call(newArgs(t)))
	}
	assert.Equal(t, []int{2, 2, 2}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls}, "acme served the two calls within")
}

// B12: a caller's mistake is returned as such; it costs no impl a run, a failure or its standing.
func TestB12ArgumentErrors(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := newManager(t, func(p *oppolicy.Policy) { p.Strict = strict }, opmanager.Settings{})
		for range 10 {
			err := opmanager.MustBind(f.Manager, addOne).Call(addArgs{})
			var arg *opregistry.ArgError
			require.ErrorAs(t, err, &arg)
			var call *opmanager.CallError
			assert.NotErrorAs(t, err, &call)
		}
		assert.Zero(t, f.vendor.calls+f.flagos.calls+f.reference.calls)
		assert.Zero(t, count[opmanager.Failed](f.events))
		assert.Empty(t, f.Quarantines())
	}
}

// B17: one policy may be in force in several views, which end one by one.
func TestB17OnePolicyInTwoViews(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	policy := f.Policy()
	policy.Prefer = opregistry.KindReference
	outer, inner := f.With(policy), f.With(policy)
	inner.Close()
	inner.Close()
	require.NoError(t, opmanager.MustBind(outer, addOne).Call(newArgs(t)))
	outer.Close()
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Equal(t, []int{1, 0, 1}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
}

// B19: the environment is read once, each variable of it, and not at calls.
func TestB19EnvironmentIsReadOnce(t *testing.T) {
	env, reads := map[string]string{"TE_FL_PREFER": "vendor", "TE_FL_STRICT": "0"}, map[string]int{}
	policy, err := oppolicy.FromEnvironment(func(name string) (string, bool) {
		reads[name]++
		v, ok := env[name]
		return v, ok
	})
	require.NoError(t, err)
	f := newManager(t, func(p *oppolicy.Policy) { *p = policy }, opmanager.Settings{})
	for name, value := range map[string]string{"TE_FL_PREFER": "reference", "TE_FL_STRICT": "1", "TE_FL_DENY_VENDORS": "acme", "TE_FL_PER_OP": "add_one=reference"} {
		env[name] = value
		t.Setenv(name, value)
	}
	f.vendor.do = halfWay
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	f.Reprobe()
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Equal(t, []int{2, 2, 0}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
	for name, n := range reads {
		assert.Equal(t, 1, n, name)
	}
}

// B20: an impl is known by its id, also when another one runs the same function.
func TestB20ImplsOfOneFunction(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	twins := opregistry.Source{Name: "twins"}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		for _, name := range []string{"left", "right"} {
			twins.Impls = append(twins.Impls, opregistry.Impl{Op: op, ID: "vendor." + name, Kind: opregistry.KindVendor, Vendor: name, Run: runOf(op, f.vendor.run)})
		}
	}
	require.NoError(t, f.registry.Register(twins))
	policy := f.Policy()
	require.NoError(t, policy.SetPerOp("*=vendor:right|vendor:left", "test"))
	require.NoError(t, setPolicy(f.Manager, policy))
	a := newPair(t)
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	require.NoError(t, opmanager.MustBind(f.Manager, pairFwd).Call(a))
	assert.Equal(t, map[string]uint64{"vendor.right": 1}, served(f.Manager, "add_one"))
	assert.Equal(t, "vendor.right", a.Saved.Owner())
	for _, e := range f.events.all {
		if selected, ok := e.(opmanager.Selected); ok {
			assert.Equal(t, "vendor.right", selected.Impl.ID)
		}
	}
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "vendor.right", e.Selected)
}

// B21: what was closed is collected, although the registry lives on.
func TestB21ManagersAreCollected(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	// The listener stands for what a Manager shares with its views.
	use := func(m *opmanager.Manager, shared *events) (weak.Pointer[opmanager.Manager], weak.Pointer[events]) {
		require.NoError(t, opmanager.MustBind(m, addOne).Call(newArgs(t)))
		require.NoError(t, opmanager.MustBind(m.Layer(3), addOne).Call(newArgs(t)))
		m.Close()
		return weak.Make(m), weak.Make(shared)
	}
	listener := &events{}
	m, shared := use(opmanager.New(f.registry, f.Policy(), opmanager.Settings{Listeners: []opmanager.Listener{listener}}), listener)
	view, _ := use(f.With(f.Policy()), nil)
	assert.Eventually(t, func() bool {
		goruntime.GC()
		return m.Value() == nil && shared.Value() == nil && view.Value() == nil
	}, time.Minute, time.Millisecond)
}

// B21: errors that all read differently are logged once, and are not kept.
func TestB21LogLinesAreBounded(t *testing.T) {
	var out bytes.Buffer
	f := newManager(t, func(p *oppolicy.Policy) { p.Quarantine.Disabled = true }, opmanager.Settings{
		Listeners: []opmanager.Listener{opmanager.NewLogListener(slog.New(slog.NewTextHandler(&out, nil)))},
	})
	bound, a, n := opmanager.MustBind(f.Manager, addOne), newArgs(t), 0
	f.vendor.do = func(addArgs) error {
		n++
		return fmt.Errorf("device lost at %#x", n)
	}
	for range 1000 {
		require.NoError(t, bound.Call(a))
	}
	assert.Equal(t, 1, strings.Count(out.String(), "device lost"))
	assert.Equal(t, 1, strings.Count(out.String(), "fallback"))
}

// B26: a call by name obeys the policy like any other: what is denied does not run,
// and what fails runs once.
func TestB26CallByNameObeysThePolicy(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Prefer, p.Strict, p.Deny = opregistry.KindFlagos, true, []string{"acme"}
	}, opmanager.Settings{})
	f.flagos.do = halfWay
	require.ErrorContains(t, opmanager.Call(f.Manager, "add_one", newArgs(t)), "device lost")
	assert.Equal(t, []int{0, 1, 0}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
	policy := f.Policy()
	policy.Strict = false
	require.NoError(t, setPolicy(f.Manager, policy))
	require.NoError(t, opmanager.Call(f.Manager, "add_one", newArgs(t)))
	assert.Equal(t, []int{0, 2, 1}, []int{f.vendor.calls, f.flagos.calls, f.reference.calls})
}

// W2: what a call costs does not grow with the registry or the policy.
func TestW2CallsDoNotLookAround(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Prefer = opregistry.KindFlagos }, opmanager.Settings{})
	many := opregistry.Source{Name: "many"}
	for i := range 100 {
		op := opregistry.NewOp(fmt.Sprintf("op_%d", i), opregistry.Schema[addArgs]{})
		many.Impls = append(many.Impls, opregistry.Impl{Op: op, ID: "default.many", Kind: opregistry.KindFlagos, Run: f.flagos.run})
	}
	probes := 0
	many.Impls = append(many.Impls, opregistry.Impl{Op: addOne, ID: "vendor.probed", Kind: opregistry.KindVendor, Vendor: "probed", Run: f.flagos.run,
		Available: func() error { probes++; return nil }})
	require.NoError(t, f.registry.Register(many))
	generation, bound, a := f.Generation(), opmanager.MustBind(f.Manager, addOne), newArgs(t)
	allocateNothing(t, func() {
		if bound.Call(a) != nil {
			t.Fail()
		}
	})
	assert.Equal(t, generation, f.Generation())
	assert.Equal(t, 1, probes)
}

// W4: an impl that only says what it cannot do is passed over, which is no failure of it.
func TestW4ImplsThatOnlyDecline(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do, f.flagos.do, f.reference.do = declines, declines, declines
	for range 5 {
		err := opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
		require.ErrorIs(t, err, opregistry.ErrUnsupported)
		var call *opmanager.CallError
		require.ErrorAs(t, err, &call)
		assert.Len(t, call.Tried, 3)
	}
	for _, s := range f.Stats() {
		if s.Op == "add_one" {
			assert.Equal(t, []uint64{0, 0, 5}, []uint64{s.Calls, s.Errors, s.Declines}, s.ID)
		}
	}
	assert.Empty(t, f.Quarantines())
}

// W5: an op has one argument struct; anything else is refused before an impl runs.
func TestW5ArgumentsOfAnotherType(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	err := opmanager.Call(f.Manager, "add_one", struct{ Input, Output *tensor.Tensor }{})
	require.ErrorContains(t, err, `op "add_one": given arguments of type struct`)
	assert.Zero(t, f.vendor.calls+f.flagos.calls+f.reference.calls)
	assert.Zero(t, count[opmanager.Failed](f.events))
}
