package opstest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// testCase is one call of an op.
type testCase[A any] struct {
	name string
	make func(*stage) A
}

// suite describes how one op is tested.
type suite[A any] struct {
	op *opregistry.Op[A]

	// cases returns the calls with operands of one storage dtype.
	cases func(tensor.DType) []testCase[A]

	// refresh overwrites the saved state in the operands of a backward call by running a forward
	// impl. It returns that impl's error if it declines. Nil for other ops.
	refresh func(tensortest.TB, *opregistry.Exec, A, opregistry.Impl) error

	// values returns what is compared with the oracle instead of the written operands, for ops
	// whose single operands have no meaning on their own. Nil for most ops.
	values func(A) []opregistry.Operand

	// bitwise requires the oracle's bits: the op copies patterns, including those of NaN.
	bitwise bool
}

func suites() []*untyped {
	return []*untyped{
		suite[gemm.GenericGemmArgs]{op: gemm.GenericGemm, cases: gemmCases}.untyped(),
		suite[norm.RMSNormFwdArgs]{op: norm.RMSNormFwd, cases: rmsnormFwdCases}.untyped(),
		suite[norm.RMSNormBwdArgs]{op: norm.RMSNormBwd, cases: rmsnormBwdCases, refresh: rmsnormRefresh}.untyped(),
		suite[activation.SwiGLUArgs]{op: activation.SwiGLU, cases: swigluCases}.untyped(),
		suite[activation.DSwiGLUArgs]{op: activation.DSwiGLU, cases: dswigluCases}.untyped(),
		suite[norm.ResidualAddArgs]{op: norm.ResidualAdd, cases: residualAddCases}.untyped(),
		suite[attention.FusedAttnFwdArgs]{op: attention.FusedAttnFwd, cases: attnFwdCases}.untyped(),
		suite[attention.FusedAttnBwdArgs]{op: attention.FusedAttnBwd, cases: attnBwdCases, refresh: attnRefresh}.untyped(),
		suite[rope.FusedRopeArgs]{op: rope.FusedRopeForward, cases: ropeCases}.untyped(),
		suite[rope.FusedRopeArgs]{op: rope.FusedRopeBackward, cases: ropeCases}.untyped(),
		suite[optim.MultiTensorAdamArgs]{op: optim.MultiTensorAdam, cases: adamCases}.untyped(),
		suite[optim.MultiTensorL2NormArgs]{op: optim.MultiTensorL2Norm, cases: l2normCases}.untyped(),
		suite[optim.MultiTensorScaleArgs]{op: optim.MultiTensorScale, cases: scaleCases}.untyped(),
		suite[embedding.EmbeddingFwdArgs]{op: embedding.EmbeddingFwd, cases: embeddingFwdCases}.untyped(),
		suite[embedding.EmbeddingBwdArgs]{op: embedding.EmbeddingBwd, cases: embeddingBwdCases}.untyped(),
		suite[loss.CrossEntropyFwdArgs]{op: loss.CrossEntropyFwd, cases: crossEntropyFwdCases}.untyped(),
		suite[loss.CrossEntropyBwdArgs]{op: loss.CrossEntropyBwd, cases: crossEntropyBwdCases, refresh: crossEntropyRefresh}.untyped(),
		suite[norm.RMSNormBwdAddArgs]{op: norm.RMSNormBwdAdd, cases: rmsnormBwdAddCases}.untyped(),
		suite[norm.LayerNormFwdArgs]{op: norm.LayerNormFwd, cases: layernormFwdCases}.untyped(),
		suite[norm.LayerNormBwdArgs]{op: norm.LayerNormBwd, cases: layernormBwdCases, refresh: layernormRefresh}.untyped(),
		suite[activation.ActivationArgs]{op: activation.GELU, cases: activationCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.QGELU, cases: activationCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.ReLU, cases: activationCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.SReLU, cases: activationCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.SiLU, cases: activationCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.GEGLU, cases: gluCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.GLU, cases: gluCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.QGEGLU, cases: gluCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.ReGLU, cases: gluCases}.untyped(),
		suite[activation.ActivationArgs]{op: activation.SReGLU, cases: gluCases}.untyped(),
		suite[activation.ClampedSwiGLUArgs]{op: activation.ClampedSwiGLU, cases: clampedSwiGLUCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DGELU, cases: dactivationCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DQGELU, cases: dactivationCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DReLU, cases: dactivationCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DSReLU, cases: dactivationCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DSiLU, cases: dactivationCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DGEGLU, cases: dgluCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DGLU, cases: dgluCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DQGEGLU, cases: dgluCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DReGLU, cases: dgluCases}.untyped(),
		suite[activation.DActivationArgs]{op: activation.DSReGLU, cases: dgluCases}.untyped(),
		suite[activation.ClampedDSwiGLUArgs]{op: activation.ClampedDSwiGLU, cases: clampedDSwiGLUCases}.untyped(),
		suite[activation.DBiasDActivationArgs]{op: activation.DBiasDGELU, cases: dbiasCases}.untyped(),
		suite[activation.DBiasDActivationArgs]{op: activation.DBiasDSiLU, cases: dbiasCases}.untyped(),
		suite[activation.DBiasDActivationArgs]{op: activation.DBiasDReLU, cases: dbiasCases}.untyped(),
		suite[activation.DBiasDActivationArgs]{op: activation.DBiasDQGELU, cases: dbiasCases}.untyped(),
		suite[activation.DBiasDActivationArgs]{op: activation.DBiasDSReLU, cases: dbiasCases}.untyped(),
		suite[softmax.SoftmaxArgs]{op: softmax.ScaledSoftmaxForward, cases: softmaxCases}.untyped(),
		suite[softmax.SoftmaxBackwardArgs]{op: softmax.ScaledSoftmaxBackward, cases: softmaxBackwardCases}.untyped(),
		suite[softmax.ScaledMaskedSoftmaxForwardArgs]{op: softmax.ScaledMaskedSoftmaxForward, cases: maskedSoftmaxCases}.untyped(),
		suite[softmax.SoftmaxBackwardArgs]{op: softmax.ScaledMaskedSoftmaxBackward, cases: softmaxBackwardCases}.untyped(),
		suite[softmax.SoftmaxArgs]{op: softmax.ScaledUpperTriangMaskedSoftmaxForward, cases: triangularSoftmaxCases}.untyped(),
		suite[softmax.SoftmaxBackwardArgs]{op: softmax.ScaledUpperTriangMaskedSoftmaxBackward, cases: triangularSoftmaxBackwardCases}.untyped(),
		suite[softmax.SoftmaxArgs]{op: softmax.ScaledAlignedCausalMaskedSoftmaxForward, cases: alignedSoftmaxCases}.untyped(),
		suite[softmax.SoftmaxBackwardArgs]{op: softmax.ScaledAlignedCausalMaskedSoftmaxBackward, cases: alignedSoftmaxBackwardCases}.untyped(),
		suite[rope.FusedQKVRopeArgs]{op: rope.FusedQKVRopeForward, cases: qkvRopeForwardCases}.untyped(),
		suite[rope.FusedQKVRopeArgs]{op: rope.FusedQKVRopeBackward, cases: qkvRopeBackwardCases}.untyped(),
		suite[dropoutops.DropoutFwdArgs]{op: dropoutops.DropoutFwd, cases: dropoutFwdCases}.untyped(),
		suite[dropoutops.DropoutBwdArgs]{op: dropoutops.DropoutBwd, cases: dropoutBwdCases, refresh: dropoutRefresh}.untyped(),

		suite[optim.MultiTensorAdamArgs]{op: optim.MultiTensorAdamParamRemainder, cases: remainderCases, values: remainderValues}.untyped(),
		suite[optim.MultiTensorAdamArgs]{op: optim.MultiTensorAdamFP8, cases: adamFP8Cases}.untyped(),
		suite[optim.MultiTensorAdamCapturableArgs]{op: optim.MultiTensorAdamCapturable, cases: capturableCases}.untyped(),
		suite[optim.MultiTensorAdamCapturableArgs]{op: optim.MultiTensorAdamCapturableMaster, cases: capturableMasterCases}.untyped(),
		suite[optim.MultiTensorSGDArgs]{op: optim.MultiTensorSGD, cases: sgdCases}.untyped(),
		suite[optim.MultiTensorScaleTensorArgs]{op: optim.MultiTensorScaleTensor, cases: scaleTensorCases}.untyped(),
		suite[optim.MultiTensorUnscaleL2NormArgs]{op: optim.MultiTensorUnscaleL2Norm, cases: unscaleL2NormCases}.untyped(),
		suite[quant.MultiTensorComputeScaleAndScaleInvArgs]{op: quant.MultiTensorComputeScaleAndScaleInv, cases: computeScaleCases}.untyped(),
		suite[quant.MultiTensorComputeScaleInvE8M0Args]{op: quant.MultiTensorComputeScaleInvE8M0, cases: computeE8M0Cases}.untyped(),
		suite[quant.ComputeAmaxArgs]{op: quant.ComputeAmax, cases: computeAmaxCases}.untyped(),
		suite[quant.FusedAmaxAndScaleUpdateArgs]{op: quant.FusedAmaxAndScaleUpdateAfterReduction, cases: fusedAmaxCases}.untyped(),
		suite[quant.QuantizeArgs]{op: quant.Quantize, cases: quantizeCases}.untyped(),
		suite[quant.DequantizeArgs]{op: quant.Dequantize, cases: dequantizeCases}.untyped(),
		suite[quant.BgradQuantizeArgs]{op: quant.BgradQuantize, cases: bgradCases}.untyped(),
		suite[quant.MultiTensorQuantizeArgs]{op: quant.MultiTensorQuantize, cases: multiQuantizeCases}.untyped(),
		suite[quant.SplitQuantizeArgs]{op: quant.SplitQuantize, cases: splitQuantizeCases}.untyped(),
		suite[quant.GroupQuantizeArgs]{op: quant.GroupQuantize, cases: groupQuantizeCases}.untyped(),
		suite[quant.BgradGroupQuantizeArgs]{op: quant.BgradGroupQuantize, cases: bgradGroupCases}.untyped(),
		suite[quant.CastToFP8Args]{op: quant.CastToFP8, cases: castToFP8Cases}.untyped(),
		suite[quant.FP8TransposeArgs]{op: quant.FP8Transpose, cases: fp8TransposeCases, bitwise: true}.untyped(),
		suite[quant.SwapFirstDimsArgs]{op: quant.SwapFirstDims, cases: swapFirstDimsCases, bitwise: true}.untyped(),
		suite[quant.NVFP4DataTransposeArgs]{op: quant.NVFP4DataTranspose, cases: nvfp4TransposeCases}.untyped(),
		suite[quant.NVFP42DMultiTensorTransposeArgs]{op: quant.NVFP42DMultiTensorTranspose, cases: nvfp4MultiTransposeCases}.untyped(),
		suite[quant.SplitsToOffsetsArgs]{op: quant.SplitsToOffsets, cases: splitsCases}.untyped(),
		suite[quant.PartialAmaxArgs]{op: quant.FP8BlockScalingComputePartialAmax, cases: blockPartialAmaxCases}.untyped(),
		suite[quant.PartialCastArgs]{op: quant.FP8BlockScalingPartialCast, cases: blockPartialCastCases}.untyped(),
		suite[quant.MXFP8PartialAmaxArgs]{op: quant.MXFP8ScalingComputePartialAmax, cases: mxfp8PartialAmaxCases}.untyped(),
		suite[quant.MXFP8PartialCastArgs]{op: quant.MXFP8ScalingPartialCast, cases: mxfp8PartialCastCases}.untyped(),
		suite[quant.PartialAmaxArgs]{op: quant.NVFP42DComputePartialAmax, cases: nvfp4PartialAmaxCases}.untyped(),
		suite[quant.NVFP4MultiTensorComputePartialAmaxArgs]{op: quant.NVFP4MultiTensorComputePartialAmax, cases: nvfp4MultiPartialAmaxCases}.untyped(),
		suite[quant.NVFP42DPartialCastArgs]{op: quant.NVFP42DPartialCast, cases: nvfp4PartialCastCases}.untyped(),
		suite[quant.NVFP4MultiTensor2DPartialCastArgs]{op: quant.NVFP4MultiTensor2DPartialCast, cases: nvfp4MultiPartialCastCases}.untyped(),
		suite[quant.NVFP4ComputeGlobalScaleArgs]{op: quant.NVFP4ComputeGlobalScale, cases: globalScaleCases}.untyped(),
		suite[quant.NVFP4ComputePerBlockScaleArgs]{op: quant.NVFP4ComputePerBlockScale, cases: perBlockScaleCases}.untyped(),
		suite[quant.NVFP4ExpandScaleToFP8Args]{op: quant.NVFP4ExpandScaleToFP8, cases: expandScaleCases}.untyped(),
		suite[quant.NVFP4FusedScaleArgs]{op: quant.NVFP4FusedScale, cases: fusedScaleCases}.untyped(),
		suite[quant.NVFP4MultiTensorFusedScaleArgs]{op: quant.NVFP4MultiTensorFusedScale, cases: multiFusedScaleCases}.untyped(),

		suite[gemm.TEGeneralGroupedGemmArgs]{op: gemm.TEGeneralGroupedGemm, cases: groupedGemmCases}.untyped(),
		suite[gemm.GroupedGemmArgs]{op: gemm.TEGeneralGroupedGemmForGroupedTensor, cases: groupedTensorCases}.untyped(),
		suite[gemm.GroupedGemmArgs]{op: gemm.TEGeneralGroupedGemmForDiscreteIn, cases: discreteInCases}.untyped(),
		suite[gemm.GroupedGemmArgs]{op: gemm.TEGeneralGroupedGemmForDiscreteOut, cases: discreteOutCases}.untyped(),
		suite[moe.MoEPermuteFwdArgs]{op: moe.MoEPermuteFwd, cases: moePermuteFwdCases}.untyped(),
		suite[moe.MoEUnpermuteArgs]{op: moe.MoEPermuteBwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh}.untyped(),
		suite[moe.MoEUnpermuteArgs]{op: moe.MoEUnpermuteFwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh}.untyped(),
		suite[moe.MoEUnpermuteBwdArgs]{op: moe.MoEUnpermuteBwd, cases: moeUnpermuteBwdCases, refresh: moeUnpermuteBwdRefresh}.untyped(),
		suite[moe.MoEPermuteWithRoutingMapArgs]{op: moe.MoEPermuteWithRoutingMap, cases: routingMapCases}.untyped(),
		suite[moe.MoEUnpermuteWithRoutingMapArgs]{op: moe.MoEUnpermuteWithRoutingMap, cases: unpermuteMapCases, refresh: unpermuteMapRefresh}.untyped(),
		suite[moe.MoESortChunksFwdArgs]{op: moe.MoESortChunksFwd, cases: sortChunksCases}.untyped(),
		suite[moe.MoESortChunksBwdArgs]{op: moe.MoESortChunksBwd, cases: sortChunksBwdCases, refresh: sortChunksRefresh}.untyped(),
		suite[moe.MultiRowPaddingArgs]{op: moe.FusedMultiRowPadding, cases: multiRowCases(false)}.untyped(),
		suite[moe.MultiRowPaddingArgs]{op: moe.FusedMultiRowUnpadding, cases: multiRowCases(true)}.untyped(),
		suite[moe.FusedTopkWithScoreFunctionFwdArgs]{op: moe.FusedTopkWithScoreFunctionFwd, cases: topkCases}.untyped(),
		suite[moe.FusedTopkWithScoreFunctionBwdArgs]{op: moe.FusedTopkWithScoreFunctionBwd, cases: topkBwdCases, refresh: topkRefresh}.untyped(),
		suite[moe.FusedScoreForMoEAuxLossFwdArgs]{op: moe.FusedScoreForMoEAuxLossFwd, cases: scoreCases}.untyped(),
		suite[moe.FusedScoreForMoEAuxLossBwdArgs]{op: moe.FusedScoreForMoEAuxLossBwd, cases: scoreBwdCases, refresh: scoreRefresh}.untyped(),
		suite[moe.FusedMoEAuxLossFwdArgs]{op: moe.FusedMoEAuxLossFwd, cases: auxLossCases}.untyped(),
		suite[moe.FusedMoEAuxLossBwdArgs]{op: moe.FusedMoEAuxLossBwd, cases: auxLossBwdCases, refresh: auxLossRefresh}.untyped(),
		suite[attention.FAPrepareFwdArgs]{op: attention.FAPrepareFwd, cases: faPrepareFwdCases}.untyped(),
		suite[attention.FAPrepareBwdArgs]{op: attention.FAPrepareBwd, cases: faPrepareBwdCases}.untyped(),
		suite[attention.CopyToKVCacheArgs]{op: attention.CopyToKVCache, cases: kvCacheCases}.untyped(),
		suite[attention.ConvertTHDArgs]{op: attention.ConvertTHDToBSHD, cases: convertTHDCases(false)}.untyped(),
		suite[attention.ConvertTHDArgs]{op: attention.ConvertBSHDToTHD, cases: convertTHDCases(true)}.untyped(),
		suite[attention.GatedDeltaNetForwardArgs]{op: attention.GatedDeltaNetForward, cases: deltaNetCases}.untyped(),
		suite[attention.THDGetPartitionedIndicesArgs]{op: attention.THDGetPartitionedIndices, cases: partitionCases}.untyped(),
		suite[attention.THDReadHalfTensorArgs]{op: attention.THDReadHalfTensor, cases: readHalfCases}.untyped(),
		suite[attention.THDReadSecondHalfLSEArgs]{op: attention.THDReadSecondHalfLSE, cases: readLSECases}.untyped(),
		suite[attention.THDSecondHalfLSECorrectionArgs]{op: attention.THDSecondHalfLSECorrection, cases: correctLSECases}.untyped(),
		suite[attention.THDOutCorrectionArgs]{op: attention.THDOutCorrection, cases: outCorrectionCases}.untyped(),
		suite[attention.THDGradCorrectionArgs]{op: attention.THDGradCorrection, cases: gradCorrectionCases}.untyped(),
	}
}

// suiteOf returns the suite of an op, nil when there is none.
func suiteOf(op opregistry.Handle) *untyped {
	for _, s := range suites() {
		if s.op == op {
			return s
		}
	}
	return nil
}

// untyped is a suite whose calls have arguments of type any, so that the code that runs a suite is
// compiled once and not for each op.
type untyped struct {
	op       opregistry.Handle
	cases    func(tensor.DType) []testCase[any]
	validate func(any) error
	operands func(any) []opregistry.Operand
	updated  func(any) []opregistry.Operand
	function func(tensortest.TB, opregistry.Impl) opregistry.Func[any]
	refresh  func(tensortest.TB, *opregistry.Exec, any, opregistry.Impl) error
	values   func(any) []opregistry.Operand
	bitwise  bool
}

func (s suite[A]) untyped() *untyped {
	u := &untyped{
		op: s.op, bitwise: s.bitwise,
		cases: func(d tensor.DType) []testCase[any] {
			var cases []testCase[any]
			for _, c := range s.cases(d) {
				cases = append(cases, testCase[any]{c.name, func(s *stage) any { return c.make(s) }})
			}
			return cases
		},
		validate: func(a any) error { return s.op.Validate(a.(A)) },
		operands: func(a any) []opregistry.Operand { return s.op.Operands(a.(A)) },
		updated:  func(a any) []opregistry.Operand { return s.op.Updated(a.(A)) },
		function: func(t tensortest.TB, impl opregistry.Impl) opregistry.Func[any] {
			f := function(t, s.op, impl)
			return func(x *opregistry.Exec, a any) error { return f(x, a.(A)) }
		},
	}
	if s.refresh != nil {
		u.refresh = func(t tensortest.TB, x *opregistry.Exec, a any, forward opregistry.Impl) error {
			return s.refresh(t, x, a.(A), forward)
		}
	}
	if s.values != nil {
		u.values = func(a any) []opregistry.Operand { return s.values(a.(A)) }
	}
	return u
}

// runner is one run of a suite.
type runner struct {
	*untyped
	cfg          *config
	impl, oracle opregistry.Func[any]
	serial, many *opregistry.Exec
	served       []testCase[any]
	declined     int
}

// run returns how many cases the impl passed and how many it declined.
func (s *untyped) run(t T, impl, oracle opregistry.Impl, cfg *config) (served, declined int) {
	t.Helper()
	if impl.Determinism != opregistry.DeterminismUndeclared {
		held := *cfg
		held.irreproducible, cfg = false, &held
	}
	r := &runner{
		untyped: s, cfg: cfg, impl: s.function(t, impl), oracle: s.function(t, oracle),
		serial: opregistry.NewExec(nil, 0), many: opregistry.NewExec(scattered{}, 0),
	}
	for _, d := range cfg.dtypes {
		for _, c := range s.cases(d) {
			r.run(t, d.String()+"/"+c.name, func(t T) { r.check(t, d, c) })
		}
	}
	if len(r.served) > 0 {
		r.run(t, "at_the_same_time", r.together)
	}
	return len(r.served), r.declined
}

func (r *runner) run(t T, name string, f func(T)) {
	t.Helper()
	if r.cfg.progress != nil {
		r.cfg.progress(name)
	}
	t.Run(name, f)
}

// function returns the function that runs an impl. It declines the calls that the impl's Support
// rules out.
func function[A any](t tensortest.TB, op *opregistry.Op[A], impl opregistry.Impl) opregistry.Func[A] {
	t.Helper()
	f, ok := impl.Run.(opregistry.Func[A])
	if !ok || f == nil {
		t.Fatalf("opstest: op %q: impl %q: got Run of type %T, want a non-nil %T", op.Name(), impl.ID, impl.Run, f)
	}
	if !impl.Support.PerCall() {
		return f
	}
	return func(x *opregistry.Exec, a A) error {
		if err := opregistry.Serves(&impl.Support, op, a); err != nil {
			return err
		}
		return f(x, a)
	}
}

// staged is a call whose operands are ready.
type staged struct {
	stage    *stage
	args     any
	operands []opregistry.Operand
	before   [][]byte // by operand
}

func (r *runner) stage(t tensortest.TB, c testCase[any]) *staged {
	t.Helper()
	s := &stage{t: t}
	call := &staged{stage: s, args: c.make(s)}
	if err := r.validate(call.args); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	call.operands = r.operands(call.args)
	return call
}

// check runs one case.
func (r *runner) check(t T, d tensor.DType, c testCase[any]) {
	want := r.stage(t, c)
	if err := r.oracle(r.serial, want.args); err != nil {
		if r.cfg.partialOracle && errors.Is(err, opregistry.ErrUnsupported) {
			t.Skipf("not judged: the oracle: %v", err)
		}
		t.Fatalf("opstest: the oracle: %v", err)
	}
	got, err := r.call(t, c, r.serial)
	if err != nil {
		r.declined++
		if slices.Contains(r.cfg.mustServe, d) && contiguous(want.operands) {
			t.Fatalf("opstest: declined a case that it must serve: %v", err)
		}
		t.Skipf("declined: %v", err)
	}
	r.compare(t, want, got)
	again, err := r.call(t, c, r.many)
	if err != nil {
		t.Fatalf("opstest: declined with %d workers what it had served with one: %v", scatteredWorkers, err)
	}
	if r.cfg.irreproducible {
		r.compare(t, want, again)
	} else {
		r.same(t, got, again, "with one worker and with several")
	}
	if !t.Failed() {
		r.served = append(r.served, c)
	}
}

// call makes the operands of a case, runs the impl and checks everything that needs no oracle. The
// error is that of a declined call.
func (r *runner) call(t tensortest.TB, c testCase[any], x *opregistry.Exec) (*staged, error) {
	t.Helper()
	call, err := r.ready(t, c)
	if err != nil {
		return nil, err
	}
	err = r.guard(x, call.args)
	r.inspect(t, call, err)
	if err != nil && !errors.Is(err, opregistry.ErrUnsupported) {
		t.Fatalf("opstest: the impl failed: %v", err)
	}
	return call, err
}

// ready makes the operands of a case for the impl under test and remembers their content. The error
// is that of a forward impl that declined.
func (r *runner) ready(t tensortest.TB, c testCase[any]) (*staged, error) {
	t.Helper()
	call := r.stage(t, c)
	if r.refresh != nil && r.cfg.forward != nil {
		if err := r.refresh(t, r.serial, call.args, *r.cfg.forward); err != nil {
			return nil, fmt.Errorf("the forward impl: %w", err)
		}
	}
	for _, o := range call.operands {
		call.before = append(call.before, tensortest.Bytes(o.Tensor))
	}
	return call, nil
}

// guard runs the impl and turns a panic into an error.
func (r *runner) guard(x *opregistry.Exec, a any) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return r.impl(x, a)
}

// inspect checks that a call changed only what it may write, and nothing when it declined.
func (r *runner) inspect(t tensortest.TB, call *staged, err error) {
	t.Helper()
	declined := errors.Is(err, opregistry.ErrUnsupported)
	for i, o := range call.operands {
		if !declined && (o.Access != opregistry.AccessRead || aliased(call.operands, i)) {
			continue
		}
		if !bytes.Equal(call.before[i], tensortest.Bytes(o.Tensor)) {
			if declined {
				t.Errorf("opstest: operand %q was written to before the impl declined", o.Name)
			} else {
				t.Errorf("opstest: operand %q was written to, it is only to be read", o.Name)
			}
		}
	}
	call.stage.intact(t)
}

// aliased reports whether operand i, which is read, shares memory with one that is written.
func aliased(operands []opregistry.Operand, i int) bool {
	return slices.ContainsFunc(operands, func(o opregistry.Operand) bool {
		return o.Access != opregistry.AccessRead && tensor.Overlap(o.Tensor, operands[i].Tensor)
	})
}

func (r *runner) compare(t tensortest.TB, want, got *staged) {
	t.Helper()
	wanted, operands := want.operands, got.operands
	if r.values != nil {
		wanted, operands = r.values(want.args), r.values(got.args)
	}
	for i, o := range operands {
		if o.Access == opregistry.AccessRead {
			continue
		}
		tol := r.cfg.tolerance(r.op.Name(), o.Tensor.DType())
		if !tensortest.Close(t, wanted[i].Tensor, o.Tensor, tol) || r.bitwise && !bytes.Equal(tensortest.Bytes(wanted[i].Tensor), tensortest.Bytes(o.Tensor)) {
			t.Errorf("opstest: operand %q is not what the oracle computes", o.Name)
		}
	}
}

// same requires equal results bit for bit.
func (r *runner) same(t tensortest.TB, one, other *staged, when string) {
	t.Helper()
	for i, o := range one.operands {
		if o.Access != opregistry.AccessRead && !bytes.Equal(tensortest.Bytes(o.Tensor), tensortest.Bytes(other.operands[i].Tensor)) {
			t.Errorf("opstest: operand %q differs %s", o.Name, when)
		}
	}
}

// together runs cases from several goroutines on one Exec.
func (r *runner) together(t T) {
	const callers, rounds = 4, 8
	step := max(1, len(r.served)/rounds)
	for i := 0; i < len(r.served); i += step {
		c := r.served[i]
		alone, err := r.call(t, c, r.serial)
		if err != nil {
			t.Fatalf("opstest: %s: declined what it had served: %v", c.name, err)
		}
		calls := make([]*staged, callers)
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for k := range calls {
			if calls[k], err = r.ready(t, c); err != nil {
				t.Fatalf("opstest: %s: declined what it had served: %v", c.name, err)
			}
		}
		for k := range calls {
			wg.Go(func() { errs[k] = r.guard(r.many, calls[k].args) })
		}
		wg.Wait()
		for k, call := range calls {
			if errs[k] != nil {
				t.Fatalf("opstest: %s: failed beside other calls: %v", c.name, errs[k])
			}
			r.inspect(t, call, nil)
			if r.cfg.irreproducible {
				r.compare(t, alone, call)
			} else {
				r.same(t, alone, call, "alone and beside other calls")
			}
		}
	}
}

func contiguous(operands []opregistry.Operand) bool {
	return !slices.ContainsFunc(operands, func(o opregistry.Operand) bool { return !o.Tensor.IsContiguous() })
}
