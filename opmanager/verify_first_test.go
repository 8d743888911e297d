package opmanager_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// byDefault leaves verification as it is by default.
func byDefault(p *oppolicy.Policy) { p.Verify = oppolicy.Verify{} }

// always verifies every call.
func always(p *oppolicy.Policy) { p.Verify = oppolicy.Verify{Fraction: 1} }

// wrongFrom returns an impl of add_one that is right for n calls and then wrong.
func wrongFrom(s *scripted, n int) func(addArgs) error {
	return func(a addArgs) error {
		add := float32(1)
		if s.calls > n {
			add = 1.5
		}
		for k, x := range tensor.Data[float32](a.In) {
			tensor.Data[float32](a.Out)[k] = x + add
		}
		return nil
	}
}

// A wrong result of a vendor's first call is not used, without any word in the policy.
func TestFirstCallsAreVerified(t *testing.T) {
	f := newManager(t, byDefault, opmanager.Settings{})
	f.vendor.do = wrongFrom(f.vendor, 0)
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 3 {
		a := newArgs(t)
		require.NoError(t, bound.Call(a))
		assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	}
	assert.Equal(t, 1, f.vendor.calls)
	require.Len(t, f.Quarantines(), 1)
	q := f.Quarantines()[0]
	assert.True(t, q.Until.IsZero(), "a quarantine for a wrong result has no end")
	assert.Contains(t, q.Cause, `operand "out" differs from the result of the reference`)
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Contains(t, e.ReasonOf("vendor.acme"), "quarantined until it is cleared, because a result was wrong")
	assert.Equal(t, 1, count[opmanager.VerificationFailed](f.events))
	assert.Equal(t, 1, count[opmanager.FellBack](f.events))
	assert.Zero(t, verifyStats(f, "default.flagos"), "only vendors are verified by default")

	assert.Equal(t, 1, f.ClearQuarantine("add_one", "vendor.acme"))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Len(t, f.Quarantines(), 1, "the next call after a quarantine is verified")
}

// Each kind of call has first calls of its own, whatever handles and Managers make them.
func TestEachKindOfCallIsVerifiedFirst(t *testing.T) {
	f := newManager(t, byDefault, opmanager.Settings{})
	call := func(n int) {
		in, err := tensor.FromSlice(make([]float32, n))
		require.NoError(t, err)
		out, err := tensor.FromSlice(make([]float32, n))
		require.NoError(t, err)
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(addArgs{In: in, Out: out}))
	}
	for i, n := range []int{3, 5, 3, 5, 100, 7000} {
		before := f.reference.calls + int(verifyStats(f, "vendor.acme").Deferred)
		call(n)
		assert.Equal(t, before+1, f.reference.calls+int(verifyStats(f, "vendor.acme").Deferred), "call %d, of %d elements", i, n)
	}
}

// However late an impl becomes wrong, with every call verified no wrong result is used, and without
// one is found within a quarter of the calls before it.
func TestLateWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 20 {
		n := random.IntN(600)
		f := newManager(t, always, opmanager.Settings{})
		f.vendor.do = wrongFrom(f.vendor, n)
		bound := opmanager.MustBind(f.Manager, addOne)
		for i := range n + 3 {
			a := newArgs(t)
			require.NoError(t, bound.Call(a))
			require.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out), "call %d with a vendor that is wrong after %d", i, n)
		}
		assert.Equal(t, n+1, f.vendor.calls)

		f = newManager(t, byDefault, opmanager.Settings{})
		f.vendor.do = wrongFrom(f.vendor, n)
		verify := oppolicy.Verify{Mode: oppolicy.VerifySampled}
		found := uint64(0)
		for next := verify.Next(0); next <= uint64(n); next = verify.Next(next) {
			found = next
		}
		assert.LessOrEqual(t, verify.Next(found), uint64(n+n/4+2))
	}
}

// An operand that is updated in place has its old content again before the next impl runs.
func TestWrongInPlace(t *testing.T) {
	f := newManager(t, byDefault, opmanager.Settings{})
	f.vendor.do = wrongFrom(f.vendor, 0)
	a := newArgs(t)
	a.Out = a.In
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
}

// Only the impl that ran forward can read the saved state, so a wrong backward call is an error,
// and the pair is quarantined: the same calls made again are served by the next pair.
func TestWrongBackward(t *testing.T) {
	f := newManager(t, byDefault, opmanager.Settings{})
	fwd, bwd := opmanager.MustBind(f.Manager, pairFwd), opmanager.MustBind(f.Manager, pairBwd)
	a := newPair(t)
	require.NoError(t, fwd.Call(a))
	assert.Equal(t, "vendor.acme", a.Saved.Owner())
	f.vendor.do = wrongAt(0, 7)
	err := bwd.Call(a)
	require.ErrorIs(t, err, opmanager.ErrSavedState)
	var call *opmanager.CallError
	require.ErrorAs(t, err, &call)
	require.Len(t, call.Tried, 1)
	assert.ErrorContains(t, call.Tried[0], "differs from the result of the reference")

	a = newPair(t)
	require.NoError(t, fwd.Call(a))
	assert.Equal(t, "default.flagos", a.Saved.Owner())
	require.NoError(t, bwd.Call(a))
}

func TestWrongUnderAStrictPolicy(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify, p.Strict = oppolicy.Verify{}, true }, opmanager.Settings{})
	f.vendor.do = wrongFrom(f.vendor, 0)
	err := opmanager.MustBind(f.Manager, addOne).Call(newArgs(t))
	require.ErrorContains(t, err, "the policy is strict")
	require.ErrorContains(t, err, "differs from the result of the reference")
	assert.Zero(t, f.flagos.calls)
}

// An impl that serves calls because others declined them is verified, too.
func TestFallbackIsVerified(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { byDefault(p); p.Prefer = opregistry.KindFlagos }, opmanager.Settings{})
	f.flagos.do = declines
	f.vendor.do = wrongFrom(f.vendor, 0)
	a := newArgs(t)
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	assert.EqualValues(t, 1, verifyStats(f, "vendor.acme").Violations)
}

func TestVerifyModes(t *testing.T) {
	numbers := func(v oppolicy.Verify, most int) (all []uint64) {
		for n := v.Next(0); n != 0 && len(all) < most; n = v.Next(n) {
			all = append(all, n)
		}
		return all
	}
	assert.Equal(t, []uint64{1, 2}, numbers(oppolicy.Verify{Mode: oppolicy.VerifyFirst}, 9))
	assert.Equal(t, []uint64{1, 2, 3, 4, 6, 8, 11, 14, 18}, numbers(oppolicy.Verify{}, 9))
	assert.Equal(t, []uint64{1, 2, 3, 4}, numbers(oppolicy.Verify{Fraction: 1}, 4))
	assert.Equal(t, []uint64{1, 5, 9, 13}, numbers(oppolicy.Verify{Fraction: 0.25}, 4))
	assert.Equal(t, []uint64{1, 11, 21, 31}, numbers(oppolicy.Verify{Fraction: 0.1}, 4))
	for _, mode := range []string{"off", "first", "sampled", "always", "0.25"} {
		var p oppolicy.Policy
		require.NoError(t, p.SetVerify(strings.ToUpper(mode), "test"))
		assert.Equal(t, mode, p.View().Verify.Mode)
	}
}

// An op whose result depends on other processes is not run a second time.
func TestCollectivesAreNotVerified(t *testing.T) {
	op := opregistry.NewOp("sum_of_ranks", opregistry.Schema[addArgs]{Collective: true})
	s, reference := &scripted{}, &scripted{}
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{
		{Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: s.run},
		{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: reference.run},
	}}))
	policy := oppolicy.Default()
	policy.Verify.Fraction = 1
	m := opmanager.New(registry, policy, opmanager.Settings{})
	defer m.Close()
	require.NoError(t, opmanager.MustBind(m, op).Call(newArgs(t)))
	assert.Zero(t, reference.calls)
}

// partsArgs are addArgs for an op that is computed in parts of one element.
func addInParts(work float64) *opregistry.Op[addArgs] {
	return opregistry.NewOp("add_in_parts", opregistry.Schema[addArgs]{Parts: func(a *addArgs) opregistry.Parts[addArgs] {
		in, out := a.In, a.Out
		return opregistry.Parts[addArgs]{N: in.NumElements(), Work: work, At: func(i int) (p opregistry.Part[addArgs], err error) {
			part := &p.Args
			if part.In, err = in.Slice(0, i, i+1); err == nil {
				part.Out, err = out.Slice(0, i, i+1)
			}
			return p, err
		}}
	}})
}

// Of a call that is too large to be computed again, parts are compared, and of one whose parts are
// too large none, which is counted with the reason.
func TestVerifyParts(t *testing.T) {
	for _, tt := range []struct {
		work    float64
		found   bool
		skipped uint64
	}{{1, true, 0}, {2e7, true, 0}, {1e9, false, 1}} {
		t.Run(fmt.Sprint(tt.work), func(t *testing.T) {
			op := addInParts(tt.work)
			vendor, reference := &scripted{}, &scripted{}
			largest := 0
			reference.do = func(a addArgs) error {
				largest = max(largest, a.In.NumElements())
				return wrongFrom(reference, 1<<30)(a)
			}
			vendor.do = wrongFrom(vendor, 0)
			registry := opregistry.NewRegistry()
			require.NoError(t, registry.Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{
				{Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: opregistry.Func[addArgs](vendor.run), Priority: 9},
				{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: opregistry.Func[addArgs](reference.run)},
			}}))
			policy := oppolicy.Default()
			m := opmanager.New(registry, policy, opmanager.Settings{})
			defer m.Close()
			a := newArgs(t)
			require.NoError(t, opmanager.MustBind(m, op).Call(a))
			stats := m.Stats()
			i := 0
			for stats[i].ID != "vendor.acme" {
				i++
			}
			assert.Equal(t, tt.found, stats[i].Verify.Violations == 1)
			assert.Equal(t, tt.skipped, stats[i].Verify.Skipped)
			if tt.found {
				assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
			} else {
				assert.Contains(t, stats[i].Verify.Why, "multiplications")
			}
		})
	}
}

// cancelArgs are for an op that subtracts nearly equal numbers.
type cancelArgs struct {
	X   *tensor.Tensor `op:"0 x read f32"`
	Y   *tensor.Tensor `op:"1 y read f32"`
	Out *tensor.Tensor `op:"2 out write f32"`
}

// A difference is rounding if the call magnifies rounding as much: where terms cancel, a result
// of 0 and one of a few units of the terms are the same.
func TestRoundingIsNotWrong(t *testing.T) {
	for _, tt := range []struct {
		off   float32
		wrong uint64
	}{{0x1p-22, 0}, {1e-3, 1}} {
		op := opregistry.NewOp("cancel", opregistry.Schema[cancelArgs]{})
		subtract := func(off float32) opregistry.Func[cancelArgs] {
			return func(_ *opregistry.Exec, a cancelArgs) error {
				for i, x := range tensor.Data[float32](a.X) {
					tensor.Data[float32](a.Out)[i] = x - tensor.Data[float32](a.Y)[i] + off*x
				}
				return nil
			}
		}
		registry := opregistry.NewRegistry()
		require.NoError(t, registry.Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{
			{Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: subtract(tt.off)},
			{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: subtract(0)},
		}}))
		m := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
		defer m.Close()
		a, b := newArgs(t), newArgs(t)
		require.NoError(t, opmanager.MustBind(m, op).Call(cancelArgs{X: a.In, Y: b.In, Out: a.Out}))
		for _, s := range m.Stats() {
			if s.ID == "vendor.acme" {
				assert.Equal(t, tt.wrong, s.Verify.Violations, "off by %v", tt.off)
			}
		}
	}
}

// wrongEvents are the wrong calls that a Manager reports.
type wrongEvents struct {
	all []opmanager.VerificationFailed
}

func (w *wrongEvents) OnEvent(e opmanager.Event) {
	if e, ok := e.(opmanager.VerificationFailed); ok {
		w.all = append(w.all, e)
	}
}

// The part of a call that is reported and kept is one that differs.
func TestWrongPartIsReported(t *testing.T) {
	op := addInParts(3e7 / 14)
	vendor, reference := &scripted{}, &scripted{}
	const n = 16
	vendor.do = func(a addArgs) error {
		for i, x := range tensor.Data[float32](a.In) {
			tensor.Data[float32](a.Out)[i] = x + 1 + float32(i%2)
		}
		return nil
	}
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{
		{Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: opregistry.Func[addArgs](vendor.run), Priority: 9},
		{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: opregistry.Func[addArgs](reference.run)},
	}}))
	policy := oppolicy.Default()
	policy.Verify.Fraction = 1
	events := &wrongEvents{}
	m := opmanager.New(registry, policy, opmanager.Settings{Listeners: []opmanager.Listener{events}})
	defer m.Close()
	kept := 0
	m.KeepWrong(func(e opmanager.VerificationFailed) string {
		in, out := tensor.Data[float32](e.Call.Args.Operands()[0].Tensor), tensor.Data[float32](e.Result.Operands()[1].Tensor)
		assert.Len(t, in, 1)
		assert.Equal(t, in[0]+2, out[0])
		kept++
		return "file"
	})
	in, err := tensor.FromSlice(make([]float32, n))
	require.NoError(t, err)
	out, err := tensor.FromSlice(make([]float32, n))
	require.NoError(t, err)
	for range 20 {
		m.ClearQuarantine("", "")
		require.NoError(t, opmanager.MustBind(m, op).Call(addArgs{In: in, Out: out}))
	}
	assert.Positive(t, kept)
	require.Len(t, events.all, kept)
	assert.Equal(t, "file", events.all[0].File)
	assert.ErrorContains(t, &events.all[0], "primus ops replay file runs the call again")
}
