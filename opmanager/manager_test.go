package opmanager_test

import (
	"errors"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type addArgs struct {
	In  *tensor.Tensor `op:"0 in read any"`
	Out *tensor.Tensor `op:"1 out write any may=in"`
}

// pairArgs are addArgs for ops of a family.
type pairArgs struct {
	In    *tensor.Tensor `op:"0 in read any"`
	Out   *tensor.Tensor `op:"1 out write any may=in"`
	Saved *opregistry.Saved
}

// Three ops that compute out = in + 1, two of them a forward and backward pair.
var (
	addOne  = opregistry.NewOp("add_one", opregistry.Schema[addArgs]{})
	pairFwd = opregistry.NewOp("pair_fwd", opregistry.Schema[pairArgs]{Family: "pair", Forward: true})
	pairBwd = opregistry.NewOp("pair_bwd", opregistry.Schema[pairArgs]{Family: "pair"})
)

// runOf returns an impl of addOne as one of an op.
func runOf(op opregistry.Handle, run opregistry.Func[addArgs]) any {
	if op.Family() == "" {
		return run
	}
	return opregistry.Func[pairArgs](func(ex *opregistry.Exec, a pairArgs) error { return run(ex, addArgs{a.In, a.Out}) })
}

// scripted is an impl whose behaviour a test changes between calls.
type scripted struct {
	mu    sync.Mutex
	calls int
	do    func(a addArgs) error
}

func (s *scripted) run(_ *opregistry.Exec, a addArgs) error {
	s.mu.Lock()
	s.calls++
	do := s.do
	s.mu.Unlock()
	if do != nil {
		return do(a)
	}
	in, out := tensor.Data[float32](a.In), tensor.Data[float32](a.Out)
	for i := range in {
		out[i] = in[i] + 1
	}
	return nil
}

// halfWay writes the first element and fails.
func halfWay(a addArgs) error {
	tensor.Data[float32](a.Out)[0] = tensor.Data[float32](a.In)[0] + 1
	return errors.New("device lost")
}

func panics(addArgs) error { panic("boom") }

func declines(addArgs) error { return opregistry.Unsupported("dtype f32") }

type events struct {
	mu  sync.Mutex
	all []opmanager.Event
}

func (e *events) OnEvent(ev opmanager.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func count[E opmanager.Event](e *events) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, ev := range e.all {
		if _, ok := ev.(E); ok {
			n++
		}
	}
	return n
}

type fixtureManager struct {
	*opmanager.Manager
	vendor, flagos, reference *scripted
	events                    *events
	registry                  *opregistry.Registry
}

// setPolicy returns the error of SetPolicy.
func setPolicy(m *opmanager.Manager, p oppolicy.Policy) error {
	_, err := m.SetPolicy(p)
	return err
}

// dryRun returns what SetPolicy would do to a Manager whose policy has one layer.
func dryRun(m *opmanager.Manager, p oppolicy.Policy) opmanager.DryRun {
	return m.PolicyStack().DryRun(opmanager.LayerDefault, opmanager.PolicyLayer{Policy: p})
}

// newManager registers a vendor, a flagos and a reference impl for each op; the
// policy prefers vendor unless edit changes it.
func newManager(t *testing.T, edit func(*oppolicy.Policy), set opmanager.Settings) fixtureManager {
	t.Helper()
	f := fixtureManager{vendor: &scripted{}, flagos: &scripted{}, reference: &scripted{}, events: &events{}, registry: opregistry.NewRegistry()}
	src := opregistry.Source{Name: "test"}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		src.Impls = append(src.Impls,
			opregistry.Impl{Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "Acme", Priority: 100, Run: runOf(op, f.vendor.run)},
			opregistry.Impl{Op: op, ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150, Run: runOf(op, f.flagos.run)},
			opregistry.Impl{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Priority: 50, Run: runOf(op, f.reference.run)},
		)
	}
	require.NoError(t, f.registry.Register(src))
	policy := oppolicy.Default()
	policy.Prefer, policy.Verify.Mode = opregistry.KindVendor, oppolicy.VerifyOff
	if edit != nil {
		edit(&policy)
	}
	set.Listeners = append(set.Listeners, f.events)
	f.Manager = opmanager.New(f.registry, policy, set)
	t.Cleanup(f.Close)
	return f
}

func newArgs(t *testing.T) addArgs {
	t.Helper()
	in, err := tensor.FromSlice([]float32{1, 2, 3})
	require.NoError(t, err)
	out, err := tensor.FromSlice([]float32{0, 0, 0})
	require.NoError(t, err)
	return addArgs{In: in, Out: out}
}

func newPair(t *testing.T) pairArgs {
	t.Helper()
	a := newArgs(t)
	return pairArgs{In: a.In, Out: a.Out, Saved: new(opregistry.Saved)}
}

func TestCallUsesBestCandidate(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	a := newArgs(t)
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	assert.Equal(t, 1, f.vendor.calls)
	assert.Zero(t, f.flagos.calls)
}

func TestFallback(t *testing.T) {
	tests := []struct {
		name     string
		do       func(addArgs) error
		declined bool
	}{
		{"decline", declines, true},
		{"failure half way", halfWay, false},
		{"panic", panics, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newManager(t, nil, opmanager.Settings{})
			f.vendor.do = tt.do
			a := newArgs(t)
			require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
			assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
			assert.Equal(t, 1, f.flagos.calls)
			for _, s := range f.Stats() {
				switch {
				case s.Op != "add_one":
				case s.ID == "default.flagos":
					assert.EqualValues(t, 1, s.Fallbacks)
				case s.ID == "vendor.acme":
					assert.Equal(t, tt.declined, s.Declines == 1)
					assert.Equal(t, tt.declined, s.Errors == 0)
				}
			}
			assert.Equal(t, 1, count[opmanager.FellBack](f.events))
		})
	}
}

func TestEveryCandidateFails(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do, f.flagos.do, f.reference.do = declines, halfWay, panics
	err := opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
	var call *opmanager.CallError
	require.ErrorAs(t, err, &call)
	assert.Len(t, call.Tried, 3)
	assert.ErrorIs(t, err, opregistry.ErrUnsupported)
	for _, part := range []string{"add_one", "vendor.acme", "unsupported: dtype f32", "default.flagos", "device lost", "reference.go", "panic: boom"} {
		assert.ErrorContains(t, err, part)
	}
}

// B12: a caller's mistake runs no impl.
func TestWrongArgumentsRunNothing(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	err := opmanager.MustBind(f.Manager, addOne).Call(addArgs{})
	var arg *opregistry.ArgError
	require.ErrorAs(t, err, &arg)
	assert.Zero(t, f.vendor.calls+f.flagos.calls+f.reference.calls)
}

// B1, B2: strict means that the first candidate runs or the call fails.
func TestB1StrictFails(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Strict = true }, opmanager.Settings{})
	f.vendor.do = declines
	err := opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
	require.ErrorContains(t, err, "strict")
	assert.Zero(t, f.flagos.calls)
}

// B3: an op on operands in place is never run again over a half-written operand.
func TestB3InPlaceDoesNotRunTwice(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = halfWay
	a := newArgs(t)
	a.Out = a.In
	err := opmanager.MustBind(f.Manager, addOne).Call(a)
	require.ErrorContains(t, err, `"out" is updated in place`)
	assert.Zero(t, f.flagos.calls)
	assert.Equal(t, 1, f.vendor.calls)
}

func TestInPlaceDeclineFallsBack(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = declines
	a := newArgs(t)
	a.Out = a.In
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.In))
}

// An impl that failed somewhere else, such as in another process, leaves operands as they were.
func TestUntouchedInPlaceFallsBack(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = func(addArgs) error { return opregistry.Untouched(errors.New("its process died")) }
	a := newArgs(t)
	a.Out = a.In
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.In))
	assert.Equal(t, 1, f.flagos.calls)
}

func TestProtectedInPlaceFallsBack(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.ProtectInPlace = true }, opmanager.Settings{})
	f.vendor.do = halfWay
	a := newArgs(t)
	a.Out = a.In
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.In), "restored, then run once by flagos")
}

func TestProtectedOperandIsRestoredWhenAllFail(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.ProtectInPlace = true }, opmanager.Settings{})
	f.vendor.do, f.flagos.do, f.reference.do = halfWay, halfWay, halfWay
	a := newArgs(t)
	a.Out = a.In
	require.Error(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{1, 2, 3}, tensor.Data[float32](a.In))
}

// W1: the backward op runs where the forward op ran.
func TestW1BackwardFollowsForward(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	fwd, bwd := opmanager.MustBind(f.Manager, pairFwd), opmanager.MustBind(f.Manager, pairBwd)
	a := newPair(t)
	f.vendor.do = declines
	require.NoError(t, fwd.Call(a))
	assert.Equal(t, "default.flagos", a.Saved.Owner())
	f.vendor.do = nil
	require.NoError(t, bwd.Call(a))
	assert.Equal(t, 1, f.vendor.calls, "the vendor declined the forward call and did not see the backward one")
	assert.Equal(t, 2, f.flagos.calls)

	f.flagos.do = halfWay
	err := bwd.Call(a)
	require.ErrorContains(t, err, "run the forward op again")
	require.ErrorIs(t, err, opmanager.ErrSavedState)
	assert.Zero(t, f.reference.calls)

	denied := f.Policy()
	denied.PerOp = []oppolicy.OpRule{{Pattern: "pair_fwd", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}
	require.NoError(t, setPolicy(f.Manager, denied))
	err = bwd.Call(a)
	require.ErrorContains(t, err, `impl "default.flagos", which is no longer a candidate`)
	require.ErrorIs(t, err, opmanager.ErrSavedState)
}

func TestFamilyIsSelectedTogether(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "half", Impls: []opregistry.Impl{{
		Op: pairFwd, ID: "vendor.half", Kind: opregistry.KindVendor, Vendor: "half", Priority: 900, Run: runOf(pairFwd, (&scripted{}).run),
	}}}))
	e, err := f.Explain("pair_fwd")
	require.NoError(t, err)
	assert.Equal(t, "vendor.acme", e.Order[0].ID)
	require.Len(t, e.Rejected, 1)
	assert.Contains(t, e.Rejected[0].Reason, "no impl vendor.half of pair_bwd")

	policy := f.Policy()
	require.NoError(t, policy.SetPerOp("pair_bwd=reference", "test"))
	require.NoError(t, setPolicy(f.Manager, policy))
	e, err = f.Explain("pair_fwd")
	require.NoError(t, err)
	require.Len(t, e.Order, 1, "what the backward op may not use, the forward op may not either")
	assert.Equal(t, "reference.go", e.Order[0].ID)
}

func TestNothingSelectable(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		require.NoError(t, p.SetPerOp("add_one=vendor:acme", "environment TE_FL_PER_OP"))
		require.NoError(t, p.SetDeny("ACME", "environment TE_FL_DENY_VENDORS"))
	}, opmanager.Settings{})
	err := opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
	require.ErrorContains(t, err, "no impl can be selected")
	assert.ErrorContains(t, err, `"vendor.acme": vendor acme is denied by environment TE_FL_DENY_VENDORS`)
	assert.ErrorContains(t, err, `"default.flagos": not in the per-op order vendor:acme (environment TE_FL_PER_OP at 1)`)
}

// B7: late registration, replacement and removal take effect at the next call.
func TestB7LateRegistration(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	late := &scripted{}
	src := opregistry.Source{Name: "late", Impls: []opregistry.Impl{{
		Op: addOne, ID: "vendor.late", Kind: opregistry.KindVendor, Vendor: "late", Priority: 200, Run: late.run,
	}}}
	require.NoError(t, f.registry.Register(src))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, late.calls)
	require.NoError(t, f.registry.Unregister("late"))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, late.calls)
	assert.Equal(t, 1, f.vendor.calls)
}

func TestDeclinesDoNotQuarantine(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = declines
	for range 10 {
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	}
	assert.Equal(t, 10, f.vendor.calls)
	assert.Zero(t, count[opmanager.Quarantined](f.events))
}

func TestClearQuarantine(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	f.vendor.do = panics
	for range 3 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	f.vendor.do = nil
	assert.Zero(t, f.ClearQuarantine("pair_fwd", ""))
	assert.Zero(t, f.ClearQuarantine("", "default.flagos"))
	assert.Equal(t, 1, f.ClearQuarantine("add_one", "vendor.acme"))
	assert.Zero(t, f.ClearQuarantine("", ""))
	assert.Empty(t, f.Quarantines())
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 4, f.vendor.calls)
}

// B10, B17: a policy in force in one view is not seen in another.
func TestWithPolicy(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	other := f.Policy()
	other.Prefer = opregistry.KindReference
	view := f.With(other)
	defer view.Close()
	require.NoError(t, opmanager.MustBind(view, addOne).Call(newArgs(t)))
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Equal(t, 1, f.reference.calls)
	assert.Equal(t, 1, f.vendor.calls)
}

// B7: what has become available is used once it is asked again, and until then has a reason.
func TestUnavailable(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	available := errors.New("libacme.so not found")
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "more", Impls: []opregistry.Impl{
		{Op: addOne, ID: "vendor.missing", Kind: opregistry.KindVendor, Vendor: "missing", Run: (&scripted{}).run, Available: func() error { return available }},
		{Op: addOne, ID: "vendor.broken", Kind: opregistry.KindVendor, Vendor: "broken", Run: (&scripted{}).run, Available: func() error { panic("no driver") }},
	}}))
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, r := range e.Rejected {
		reasons[r.ID] = r.Reason
	}
	assert.Equal(t, map[string]string{
		"vendor.missing": "unavailable: libacme.so not found",
		"vendor.broken":  "unavailable: its probe panicked: no driver",
	}, reasons)
	available = nil
	f.Reprobe()
	e, err = f.Explain("add_one")
	require.NoError(t, err)
	assert.Len(t, e.Rejected, 1)
}

// W2: a call builds nothing.
func TestCallAllocatesNothing(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	a, b := newArgs(t), newPair(t)
	one, pair := opmanager.MustBind(f.Manager, addOne), opmanager.MustBind(f.Manager, pairFwd)
	allocateNothing(t, func() {
		if one.Call(a) != nil || pair.Call(b) != nil {
			t.Fail()
		}
	})
}

func TestWarnings(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		require.NoError(t, p.SetAllow("acmee,acme", "environment TE_FL_ALLOW_VENDORS"))
		require.NoError(t, p.SetPerOp("add_oen=flagos;pair_*=vendor:nvidia", "environment TE_FL_PER_OP"))
	}, opmanager.Settings{})
	assert.Equal(t, []string{
		`policy: environment TE_FL_ALLOW_VENDORS names vendor "acmee", which no loaded source registers; did you mean "acme"?`,
		`policy: environment TE_FL_PER_OP at 1 names op "add_oen", which no loaded source registers; did you mean "add_one"?`,
		`policy: environment TE_FL_PER_OP at 16 names vendor "nvidia", which no loaded source registers`,
	}, f.Warnings())
}

func TestCountsOfCollectedHandlesStay(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	a := newArgs(t)
	for range 20 {
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
		goruntime.GC()
	}
	for _, s := range f.Stats() {
		if s.Op == "add_one" && s.ID == "vendor.acme" {
			assert.EqualValues(t, 20, s.Calls)
		}
	}
}

// grow uses some 128 bytes of stack n times.
func grow(n int) (sum int) {
	var frame [16]int
	if n > 0 {
		frame[n%16] = grow(n - 1)
	}
	for _, v := range frame {
		sum += v
	}
	return sum + 1
}
