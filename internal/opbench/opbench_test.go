package opbench_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func newMaker(t *testing.T, d tensor.DType) *opbench.Maker {
	t.Helper()
	backend := cpu.New()
	m := opbench.NewMaker(backend, d)
	t.Cleanup(func() {
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close(), "every operand is released")
	})
	return m
}

func snapshot(t *testing.T, sources ...opregistry.Source) *opregistry.Snapshot {
	t.Helper()
	reg := opregistry.NewRegistry()
	for _, s := range append([]opregistry.Source{reference.Source(), flagos.Source()}, sources...) {
		require.NoError(t, reg.Register(s))
	}
	return reg.Snapshot()
}

func measure(t *testing.T, c opbench.Case, snap *opregistry.Snapshot) map[string]opbench.Result {
	t.Helper()
	op, ok := snap.Index(c.Op.Name())
	require.True(t, ok)
	results := opbench.Measure(t.Context(), c, snap, snap.Impls(op), opregistry.NewExec(nil, 0), opbench.Settings{Repeat: 3, Budget: time.Second})
	byImpl := map[string]opbench.Result{}
	for _, r := range results {
		byImpl[r.Impl] = r
	}
	require.Len(t, byImpl, len(snap.Impls(op)))
	return byImpl
}

func TestEveryCaseRunsOnEveryImpl(t *testing.T) {
	t.Parallel()
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		t.Run(d.String(), func(t *testing.T) { runEveryCase(t, d) })
	}
}

func runEveryCase(t *testing.T, d tensor.DType) {
	m := newMaker(t, d)
	snap := snapshot(t)
	var cases []opbench.Case
	add := func(c opbench.Case, err error) {
		require.NoError(t, err)
		cases = append(cases, c)
	}
	for _, l := range opbench.Layouts() {
		add(m.GEMM(5, 6, 7, l))
		add(m.GroupedGEMM(3, 5, 6, 7, l))
	}
	for _, mask := range []attention.MaskType{attention.CausalMask, attention.NoMask} {
		fwd, bwd, err := m.Attention(2, 9, 4, 2, 8, mask, nil)
		add(fwd, err)
		add(bwd, err)
	}
	for _, name := range opbench.Ops() {
		for _, size := range [][2]int{{1, 2}, {9, 128}, {7, 30}} {
			add(m.Op(name, size[0], size[1]))
		}
	}
	for _, c := range cases {
		for impl, r := range measure(t, c, snap) {
			assert.Len(t, r.Samples, 3, "%s of %s on %s: %s", c.Op.Name(), c.Shape, impl, r.Reason)
			assert.Empty(t, r.Reason)
		}
		assert.Positive(t, c.Bytes)
		assert.Equal(t, c.Bound == opbench.Compute, c.FLOPs > 0)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	m := newMaker(t, tensor.F32)
	gemm, err := m.GEMM(2, 3, 5, opbench.WGrad)
	require.NoError(t, err)
	assert.Equal(t, 60., gemm.FLOPs)
	assert.Equal(t, 4.*(6+10+15), gemm.Bytes)
	grouped, err := m.GroupedGEMM(4, 2, 3, 5, opbench.DGrad)
	require.NoError(t, err)
	assert.Equal(t, 4*gemm.FLOPs, grouped.FLOPs)
	assert.Equal(t, 4*gemm.Bytes, grouped.Bytes)
	fwd, bwd, err := m.Attention(2, 8, 4, 4, 16, attention.CausalMask, nil)
	require.NoError(t, err)
	assert.Equal(t, 2.*2*4*8*8*16, fwd.FLOPs)
	assert.Equal(t, 5.*2*4*8*8*16, bwd.FLOPs)
	open, _, err := m.Attention(2, 8, 4, 4, 16, attention.NoMask, nil)
	require.NoError(t, err)
	assert.Equal(t, 2*fwd.FLOPs, open.FLOPs)
	add, err := m.Op("residual_add", 3, 4)
	require.NoError(t, err)
	assert.Equal(t, 3.*4*12, add.Bytes)
	adam, err := m.Op("multi_tensor_adam", 3, 4)
	require.NoError(t, err)
	assert.Equal(t, 7.*4*12+4, adam.Bytes, "g and the flag are read; p, m and v are read and written")
}

// Operands lie where the backend says, which the processor may not be able to reach.
func TestCasesOnADevice(t *testing.T) {
	t.Parallel()
	m := opbench.NewMaker(fardevice.New(0), tensor.F32)
	for _, name := range opbench.Ops() {
		_, err := m.Op(name, 8, 128)
		require.NoError(t, err)
	}
	_, _, err := m.Attention(1, 8, 2, 2, 8, attention.CausalMask, nil)
	require.NoError(t, err)
	assert.NoError(t, m.Close())
}

// A backward case runs after the forward op of the same impl, even if another impl's turn came
// between them.
func TestBackwardReadsTheStateOfItsImpl(t *testing.T) {
	t.Parallel()
	m := newMaker(t, tensor.F32)
	var order []string
	note := func(s string) { order = append(order, s) }
	var impls []opregistry.Impl
	for _, v := range []string{"a", "b"} {
		impls = append(impls,
			opregistry.Impl{Op: norm.RMSNormFwd, ID: "vendor." + v, Kind: opregistry.KindVendor, Vendor: v,
				Run: func(*opregistry.Exec, norm.RMSNormFwdArgs) error { note("fwd " + v); return nil }},
			opregistry.Impl{Op: norm.RMSNormBwd, ID: "vendor." + v, Kind: opregistry.KindVendor, Vendor: v,
				Run: func(*opregistry.Exec, norm.RMSNormBwdArgs) error { note("bwd " + v); return nil }})
	}
	snap := snapshot(t, opregistry.Source{Name: "fakes", Impls: impls})
	c, err := m.Op("rmsnorm_bwd", 2, 4)
	require.NoError(t, err)
	measure(t, c, snap)
	last := ""
	for _, s := range order {
		if s[:3] == "bwd" {
			require.Contains(t, []string{"fwd " + s[4:], s}, last)
		}
		last = s
	}
	assert.Contains(t, order, "bwd b")
}

func TestReasons(t *testing.T) {
	t.Parallel()
	m := newMaker(t, tensor.BF16)
	runs := 0
	fake := func(id string, run opregistry.Func[norm.ResidualAddArgs], available func() error) opregistry.Impl {
		return opregistry.Impl{Op: norm.ResidualAdd, ID: "vendor." + id, Kind: opregistry.KindVendor, Vendor: id, Run: run, Available: available}
	}
	snap := snapshot(t, opregistry.Source{Name: "fakes", Impls: []opregistry.Impl{
		fake("away", func(*opregistry.Exec, norm.ResidualAddArgs) error { panic("not reached") }, func() error { return errors.New("no such chip") }),
		fake("declines", func(*opregistry.Exec, norm.ResidualAddArgs) error {
			return fmt.Errorf("%w: bf16", opregistry.ErrUnsupported)
		}, nil),
		{
			Op: norm.ResidualAdd, ID: "vendor.undeclared", Kind: opregistry.KindVendor, Vendor: "undeclared",
			Run:     opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { panic("not reached") }),
			Support: opregistry.Support{DTypes: []tensor.DType{tensor.F32}},
		},
		fake("panics", func(*opregistry.Exec, norm.ResidualAddArgs) error { panic("boom") }, nil),
		fake("fails_later", func(*opregistry.Exec, norm.ResidualAddArgs) error {
			if runs++; runs > 3 {
				return errors.New("worn out")
			}
			return nil
		}, nil),
	}})
	c, err := m.Op("residual_add", 2, 3)
	require.NoError(t, err)
	got := measure(t, c, snap)
	for impl, reason := range map[string]string{
		"vendor.away": "no such chip", "vendor.declines": "unsupported", "vendor.undeclared": "declared for f32", "vendor.panics": "boom", "vendor.fails_later": "worn out",
	} {
		assert.Contains(t, got[impl].Reason, reason)
		assert.Empty(t, got[impl].Samples)
	}
	assert.Len(t, got["reference.go"].Samples, 3)
}

func TestBudgetEndsSampling(t *testing.T) {
	t.Parallel()
	m := newMaker(t, tensor.F32)
	c, err := m.Op("residual_add", 2, 3)
	require.NoError(t, err)
	snap := snapshot(t)
	op, _ := snap.Index("residual_add")
	for _, r := range opbench.Measure(t.Context(), c, snap, snap.Impls(op), opregistry.NewExec(nil, 0), opbench.Settings{Repeat: 50, Budget: 1}) {
		assert.Len(t, r.Samples, 1, "each impl has at least one sample")
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	m := newMaker(t, tensor.F32)
	_, err := m.Op("generic_gemm", 2, 2)
	assert.ErrorContains(t, err, `op "generic_gemm" has no case`)
	_, err = m.GEMM(1<<20, 1<<20, 1, opbench.Forward)
	assert.ErrorContains(t, err, "at most")
	_, err = m.Op("fused_rope_forward", 2, 3)
	assert.ErrorContains(t, err, "fused_rope_forward of 2x3", "an odd head cannot be rotated")
	_, err = m.Op("residual_add", 2, 3)
	assert.NoError(t, err, "an error is not carried over to the next case")
	assert.True(t, slices.IsSorted(opbench.Ops()))
}
