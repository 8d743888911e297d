package opstest

import (
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Package reference, where the oracle is, tests conformance itself and that mistakes are found.

func TestEveryOpHasCasesAndBounds(t *testing.T) {
	t.Parallel()
	cased := 0
	for _, op := range ops.All() {
		if slices.Contains(ops.Declared(), op) {
			assert.Nil(t, suiteOf(op), op.Name())
			continue
		}
		cased++
		require.NotNil(t, suiteOf(op), op.Name())
		assert.Equal(t, op, suiteOf(op).op)
		_, reason := ops.Tolerance(op.Name(), tensor.F32)
		assert.NotEmpty(t, reason, "a reason for the bound of %s", op.Name())
	}
	assert.Len(t, suites(), cased)

	alien := opregistry.NewOp("alien", opregistry.Schema[int]{
		Validate: func(int) error { return nil }, Operands: func(int) []opregistry.Operand { return nil },
	})
	assert.Nil(t, suiteOf(alien))
}

// gradientName matches the names of backward ops.
var gradientName = regexp.MustCompile(`_(bwd|backward)(_|$)|^(dbias_)?d[a-z]*(elu|lu)$|_dswiglu$`)

func TestEveryBackwardOpHasGradCases(t *testing.T) {
	t.Parallel()
	have := map[opregistry.Handle]bool{}
	for _, p := range Differentiable() {
		assert.False(t, have[p[0]], "%s twice", p[0].Name())
		have[p[0]] = true
		assert.NotEmpty(t, gradCasesOf(p[0], p[1])(), p[0].Name())
	}
	for _, op := range ops.All() {
		if gradientName.MatchString(op.Name()) {
			assert.True(t, have[op], "gradient cases of %s", op.Name())
		}
	}
	assert.True(t, have[gemm.GenericGemm] && have[norm.ResidualAdd], "ops that are their own gradient")
	assert.Nil(t, gradCasesOf(norm.RMSNormFwd, norm.RMSNormBwd))
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
		unique(t, rmsnormBwdAddCases(d))
		unique(t, layernormFwdCases(d))
		unique(t, layernormBwdCases(d))
		unique(t, activationCases(d))
		unique(t, dactivationCases(d))
		unique(t, dbiasCases(d))
		unique(t, gluCases(d))
		unique(t, dgluCases(d))
		unique(t, clampedSwiGLUCases(d))
		unique(t, clampedDSwiGLUCases(d))
		unique(t, softmaxCases(d))
		unique(t, softmaxBackwardCases(d))
		unique(t, maskedSoftmaxCases(d))
		unique(t, triangularSoftmaxCases(d))
		unique(t, triangularSoftmaxBackwardCases(d))
		unique(t, alignedSoftmaxCases(d))
		unique(t, alignedSoftmaxBackwardCases(d))
		unique(t, qkvRopeForwardCases(d))
		unique(t, qkvRopeBackwardCases(d))
		unique(t, dropoutFwdCases(d))
		unique(t, dropoutBwdCases(d))

		unique(t, remainderCases(d))
		unique(t, adamFP8Cases(d))
		unique(t, capturableCases(d))
		unique(t, capturableMasterCases(d))
		unique(t, sgdCases(d))
		unique(t, scaleTensorCases(d))
		unique(t, unscaleL2NormCases(d))
		unique(t, computeScaleCases(d))
		unique(t, computeE8M0Cases(d))
		unique(t, computeAmaxCases(d))
		unique(t, fusedAmaxCases(d))
		unique(t, quantizeCases(d))
		unique(t, dequantizeCases(d))
		unique(t, bgradCases(d))
		unique(t, multiQuantizeCases(d))
		unique(t, splitQuantizeCases(d))
		unique(t, groupQuantizeCases(d))
		unique(t, bgradGroupCases(d))
		unique(t, castToFP8Cases(d))
		unique(t, fp8TransposeCases(d))
		unique(t, swapFirstDimsCases(d))
		unique(t, nvfp4TransposeCases(d))
		unique(t, nvfp4MultiTransposeCases(d))
		unique(t, splitsCases(d))
		unique(t, blockPartialAmaxCases(d))
		unique(t, blockPartialCastCases(d))
		unique(t, mxfp8PartialAmaxCases(d))
		unique(t, mxfp8PartialCastCases(d))
		unique(t, nvfp4PartialAmaxCases(d))
		unique(t, nvfp4MultiPartialAmaxCases(d))
		unique(t, nvfp4PartialCastCases(d))
		unique(t, nvfp4MultiPartialCastCases(d))
		unique(t, globalScaleCases(d))
		unique(t, perBlockScaleCases(d))
		unique(t, expandScaleCases(d))
		unique(t, fusedScaleCases(d))
		unique(t, multiFusedScaleCases(d))

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

func TestPartialOracleSkipsWhatItDeclines(t *testing.T) {
	t.Parallel()
	residual := func(run opregistry.Func[norm.ResidualAddArgs]) opregistry.Impl {
		return opregistry.Impl{Op: norm.ResidualAdd, ID: "reference.x", Kind: opregistry.KindReference, Run: run}
	}
	nothing := func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }
	declines := func(*opregistry.Exec, norm.ResidualAddArgs) error { return opregistry.Unsupported("no function") }
	f32 := WithDTypes(tensor.F32)

	results, err := Verify(residual(nothing), residual(declines), f32, PartialOracle())
	require.NoError(t, err)
	assert.Equal(t, []Result{{Op: "residual_add", Impl: "reference.x", DType: tensor.F32}}, results)

	results, err = Verify(residual(nothing), residual(declines), f32)
	require.NoError(t, err)
	require.NotEmpty(t, results[0].Failures)
	assert.Contains(t, results[0].Failures[0].Reason, "the oracle: unsupported: no function")
}
