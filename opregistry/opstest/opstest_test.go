package opstest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Conformance itself, and that mistakes are found, is tested where the oracle
// is: in package reference.

func TestEveryOpHasCasesAndBounds(t *testing.T) {
	t.Parallel()
	reasons := map[string]string{}
	for _, b := range bounds() {
		assert.NotContains(t, reasons, b.op, "one row an op")
		reasons[b.op] = b.reason
	}
	cased := 0
	for _, op := range ops.All() {
		if slices.Contains(ops.Declared(), op) {
			assert.Nil(t, suiteOf(op), op.Name())
			continue
		}
		cased++
		require.NotNil(t, suiteOf(op), op.Name())
		assert.Equal(t, op, suiteOf(op).handle())
		assert.NotEmpty(t, reasons[op.Name()], "a reason for the bound of %s", op.Name())
		delete(reasons, op.Name())
	}
	assert.Empty(t, reasons, "rows for ops that there are not")
	assert.Len(t, suites(), cased)

	alien := opregistry.NewOp("alien", opregistry.Schema[int]{
		Validate: func(int) error { return nil }, Operands: func(int) []opregistry.Operand { return nil },
	})
	assert.Nil(t, suiteOf(alien))
}

func TestEveryBackwardOpHasGradCases(t *testing.T) {
	t.Parallel()
	have := map[opregistry.Handle]opregistry.Handle{}
	for _, p := range Differentiable() {
		have[p[0]] = p[1]
		assert.NotEmpty(t, gradCasesOf(p[0], p[1])(), p[0].Name())
	}
	for _, op := range ops.All() {
		if name := op.Name(); strings.HasSuffix(name, "_bwd") || strings.HasSuffix(name, "_backward") {
			assert.NotNil(t, have[op], "gradient cases of %s", name)
		}
	}
	assert.Equal(t, opregistry.Handle(ops.SwiGLU), have[ops.DSwiGLU])
	assert.Nil(t, gradCasesOf(ops.RMSNormFwd, ops.RMSNormBwd))
}

func TestCaseNamesAreUnique(t *testing.T) {
	t.Parallel()
	for _, d := range computeDTypes() {
		unique(t, gemmCases(d))
		unique(t, rmsnormFwdCases(d))
		unique(t, rmsnormBwdCases(d))
		unique(t, swigluCases(d))
		unique(t, dswigluCases(d))
		unique(t, residualAddCases(d))
		unique(t, attnFwdCases(d))
		unique(t, attnBwdCases(d))
		unique(t, ropeCases(d))
		unique(t, adamCases(d))
		unique(t, l2normCases(d))
		unique(t, scaleCases(d))
		unique(t, embeddingFwdCases(d))
		unique(t, embeddingBwdCases(d))
		unique(t, crossEntropyFwdCases(d))
		unique(t, crossEntropyBwdCases(d))

		unique(t, groupedGemmCases(d))
		unique(t, groupedTensorCases(d))
		unique(t, discreteInCases(d))
		unique(t, discreteOutCases(d))
		unique(t, moePermuteFwdCases(d))
		unique(t, moeUnpermuteCases(d))
		unique(t, moeUnpermuteBwdCases(d))
		unique(t, routingMapCases(d))
		unique(t, unpermuteMapCases(d))
		unique(t, sortChunksCases(d))
		unique(t, sortChunksBwdCases(d))
		unique(t, multiRowCases(true)(d))
		unique(t, topkCases(d))
		unique(t, topkBwdCases(d))
		unique(t, scoreCases(d))
		unique(t, scoreBwdCases(d))
		unique(t, auxLossCases(d))
		unique(t, auxLossBwdCases(d))
		unique(t, faPrepareFwdCases(d))
		unique(t, faPrepareBwdCases(d))
		unique(t, kvCacheCases(d))
		unique(t, convertTHDCases(true)(d))
		unique(t, deltaNetCases(d))
		unique(t, partitionCases(d))
		unique(t, readHalfCases(d))
		unique(t, readLSECases(d))
		unique(t, correctLSECases(d))
		unique(t, outCorrectionCases(d))
		unique(t, gradCorrectionCases(d))
	}
}

func unique[A any](t *testing.T, cases []testCase[A]) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range cases {
		assert.False(t, seen[c.name], c.name)
		seen[c.name] = true
	}
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	c := newConfig([]Option{WithTolerance(tensor.F16, tensortest.Tolerance{ULP: 7})})
	assert.Equal(t, tensortest.Tolerance{Abs: 2e-6}, c.tolerance("fused_rope_forward", tensor.F32))
	assert.Equal(t, c.tolerance("fused_rope_forward", tensor.F32), c.tolerance("fused_rope_forward", tensor.F64))
	assert.Equal(t, tensortest.Tolerance{Abs: 4e-6, ULP: 1}, c.tolerance("fused_rope_forward", tensor.BF16))
	assert.Equal(t, tensortest.Tolerance{ULP: 7}, c.tolerance("fused_rope_forward", tensor.F16))
	assert.Equal(t, tensortest.Tolerance{}, c.tolerance("multi_tensor_scale", tensor.I32), "flags are exact")
}

func TestStage(t *testing.T) {
	t.Parallel()
	one, other := &stage{t: t}, &stage{t: t}
	for _, l := range []layout{dense, padded, turned} {
		x, y := one.in(l, tensor.F32, 2, 3, 4), other.in(l, tensor.F32, 2, 3, 4)
		assert.Equal(t, x.Float64s(), y.Float64s(), "equal requests, equal operands")
		assert.Equal(t, l == dense, x.IsContiguous(), "%v: %v", l, x)
		assert.NotEqual(t, x.Float64s(), one.in(l, tensor.F32, 2, 3, 4).Float64s(), "the next one differs")
		other.in(l, tensor.F32, 2, 3, 4)
	}
	assert.Equal(t, []int{12, 1, 3}, one.out(turned, tensor.F32, 2, 3, 4).Strides())
	assert.Greater(t, one.out(padded, tensor.F32, 3, 4).Strides()[0], 4)
	for _, v := range one.indexes(tensor.I64, 200, 7).Float64s() {
		assert.True(t, v >= 0 && v < 7, "%v", v)
	}
	p := one.parts(true, tensor.F32, []int{2, 0, 3}, 1, 4, 1)
	assert.Equal(t, tensor.Shape{2, 4, 3}, p[0].Shape())
	assert.Equal(t, tensor.Shape{2, 1, 3}, p[1].Shape())
	assert.Same(t, p[0].Storage(), p[1].Storage())
	assert.False(t, tensor.Overlap(p[0], p[1]))
	one.intact(t)
}

type taskFunc func(part int)

func (f taskFunc) Do(part int) { f(part) }

func TestScatteredPool(t *testing.T) {
	t.Parallel()
	var runs [50]atomic.Int32
	scattered{}.Run(len(runs), taskFunc(func(part int) { runs[part].Add(1) }))
	for i := range runs {
		assert.Equal(t, int32(1), runs[i].Load())
	}
	assert.PanicsWithValue(t, "part 3", func() {
		scattered{}.Run(5, taskFunc(func(part int) {
			if part == 3 {
				panic("part 3")
			}
		}))
	})
}
