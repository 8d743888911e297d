package opmanager_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// wrongAt serves the call and changes one element.
func wrongAt(i int, v float32) func(addArgs) error {
	return func(a addArgs) error {
		for k, x := range tensor.Data[float32](a.In) {
			tensor.Data[float32](a.Out)[k] = x + 1
		}
		tensor.Data[float32](a.Out)[i] = v
		return nil
	}
}

func verifyStats(f fixtureManager, id string) opmanager.VerifyStats {
	for _, s := range f.Stats() {
		if s.Op == "add_one" && s.ID == id {
			return s.Verify
		}
	}
	return opmanager.VerifyStats{}
}

func TestVerify(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify.Fraction, p.Verify.ReportOnly = 1, true }, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, opmanager.VerifyStats{Calls: 1}, verifyStats(f, "vendor.acme"))

	f.vendor.do = wrongAt(1, 3.5)
	a := newArgs(t)
	require.NoError(t, bound.Call(a))
	assert.Equal(t, []float32{2, 3.5, 4}, tensor.Data[float32](a.Out), "the result is the impl's")
	got := verifyStats(f, "vendor.acme")
	assert.EqualValues(t, 2, got.Calls)
	assert.EqualValues(t, 1, got.Violations)
	assert.InDelta(t, 0.5, got.MaxAbs, 0)
	assert.InDelta(t, 0.5/3, got.MaxRel, 1e-9)
	require.Equal(t, 1, count[opmanager.VerificationFailed](f.events))
	failed := f.events.all[len(f.events.all)-1].(opmanager.VerificationFailed)
	assert.Equal(t, "out", failed.Operand)
	assert.ErrorContains(t, &failed, `operand "out" differs from the result of the reference: 1 of 3 elements beyond`)

	f.vendor.do = wrongAt(0, float32(math.NaN()))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.EqualValues(t, 1, verifyStats(f, "vendor.acme").NaNs)
	assert.EqualValues(t, 2, verifyStats(f, "vendor.acme").Violations)
}

func TestVerifySamples(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify.Fraction = 0.25 }, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, f.reference.calls, "the first call")
	for range 39 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	assert.Equal(t, 10, f.reference.calls)
	assert.EqualValues(t, 10, verifyStats(f, "vendor.acme").Calls)

	only := f.Policy()
	only.Verify = oppolicy.Verify{Fraction: 1, Ops: []string{"pair_*"}}
	require.NoError(t, setPolicy(f.Manager, only))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 10, f.reference.calls)
}

func TestVerifyDoesNotCompareTheReferenceWithItself(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify.Fraction, p.Prefer = 1, opregistry.KindReference }, opmanager.Settings{})
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Equal(t, 1, f.reference.calls)
	assert.Zero(t, verifyStats(f, "reference.go"))
}

func TestVerifyCountsWhatItCannotCompare(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify.Fraction = 1 }, opmanager.Settings{})
	for name, do := range map[string]func(addArgs) error{"declines": declines, "panics": panics} {
		before := verifyStats(f, "vendor.acme").Skipped
		f.reference.do = do
		require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)), name)
		assert.Equal(t, before+1, verifyStats(f, "vendor.acme").Skipped, name)
	}
	require.NoError(t, f.registry.Unregister("test"))
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "alone", Impls: []opregistry.Impl{
		{Op: addOne, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: f.vendor.run},
	}}))
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.EqualValues(t, 3, verifyStats(f, "vendor.acme").Skipped, "there is no reference")
}

// The reference has to see the operands as they were, also those that the impl updates in place.
func TestVerifyInPlace(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Verify.Fraction = 1 }, opmanager.Settings{})
	a := newArgs(t)
	a.Out = a.In
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	assert.Equal(t, opmanager.VerifyStats{Calls: 1}, verifyStats(f, "vendor.acme"))
}

func TestVerifyQuarantines(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Verify = oppolicy.Verify{Fraction: 1}
	}, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	f.vendor.do = wrongAt(0, 7)
	require.NoError(t, bound.Call(newArgs(t)))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, f.vendor.calls)
	assert.Equal(t, 2, f.flagos.calls)
	require.Len(t, f.Quarantines(), 1)
	assert.Contains(t, f.Quarantines()[0].Cause, "differs from the result of the reference")
}

// An impl that writes before it declines, or to what is only read, is the one that is accused and
// set aside; the one that takes over gets the operands as they were.
func TestVerifyAccusesTheImplThatWrote(t *testing.T) {
	spoil := func(x *tensor.Tensor) { tensor.Data[float32](x)[1] = 99 }
	tests := []struct {
		name, want string
		do         func(addArgs) error
	}{
		{"input before a decline", `operand "in" was written to before the impl declined`, func(a addArgs) error {
			spoil(a.In)
			return declines(a)
		}},
		{"output before a decline", `operand "out" was written to before the impl declined`, func(a addArgs) error {
			spoil(a.Out)
			return declines(a)
		}},
		{"input of a call that it serves", `operand "in" was written to, although the op only reads it`, func(a addArgs) error {
			spoil(a.In)
			return wrongAt(1, 100)(a)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newManager(t, func(p *oppolicy.Policy) {
				p.Verify = oppolicy.Verify{Fraction: 1}
			}, opmanager.Settings{})
			f.vendor.do = tt.do
			a := newArgs(t)
			require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(a))
			require.Len(t, f.Quarantines(), 1)
			assert.Equal(t, "vendor.acme", f.Quarantines()[0].Impl)
			assert.Contains(t, f.Quarantines()[0].Cause, tt.want)
			assert.EqualValues(t, 1, verifyStats(f, "vendor.acme").Violations)
			assert.Zero(t, verifyStats(f, "default.flagos").Violations)
			if f.flagos.calls > 0 {
				assert.Equal(t, []float32{1, 2, 3}, tensor.Data[float32](a.In))
				assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
			}
		})
	}
}

// Operands of multi-tensor ops lie in lists of lists.
func TestVerifyLists(t *testing.T) {
	type listArgs struct {
		Lists [][]*tensor.Tensor `op:"0 lists"`
	}
	op := opregistry.NewOp("scale_all", opregistry.Schema[listArgs]{Lists: "x update f32"})
	double := func(by float32) opregistry.Func[listArgs] {
		return func(_ *opregistry.Exec, a listArgs) error {
			for _, x := range a.Lists[0] {
				for i := range tensor.Data[float32](x) {
					tensor.Data[float32](x)[i] *= by
				}
			}
			return nil
		}
	}
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{
		{Op: op, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: double(2)},
		{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: double(2)},
	}}))
	policy := oppolicy.Default()
	policy.Verify.Fraction = 1
	m := opmanager.New(registry, policy, opmanager.Settings{})
	defer m.Close()
	x, err := tensor.FromSlice([]float32{1, 2})
	require.NoError(t, err)
	require.NoError(t, opmanager.Call(m, "scale_all", listArgs{[][]*tensor.Tensor{{x}}}))
	assert.Equal(t, []float32{2, 4}, tensor.Data[float32](x))
	assert.Equal(t, opmanager.VerifyStats{Calls: 1}, m.Stats()[0].Verify)
}
