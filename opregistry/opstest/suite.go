package opstest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
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
		suite[ops.GenericGemmArgs]{op: ops.GenericGemm, cases: gemmCases}.untyped(),
		suite[ops.RMSNormFwdArgs]{op: ops.RMSNormFwd, cases: rmsnormFwdCases}.untyped(),
		suite[ops.RMSNormBwdArgs]{op: ops.RMSNormBwd, cases: rmsnormBwdCases, refresh: rmsnormRefresh}.untyped(),
		suite[ops.SwiGLUArgs]{op: ops.SwiGLU, cases: swigluCases}.untyped(),
		suite[ops.DSwiGLUArgs]{op: ops.DSwiGLU, cases: dswigluCases}.untyped(),
		suite[ops.ResidualAddArgs]{op: ops.ResidualAdd, cases: residualAddCases}.untyped(),
		suite[ops.FusedAttnFwdArgs]{op: ops.FusedAttnFwd, cases: attnFwdCases}.untyped(),
		suite[ops.FusedAttnBwdArgs]{op: ops.FusedAttnBwd, cases: attnBwdCases, refresh: attnRefresh}.untyped(),
		suite[ops.FusedRopeArgs]{op: ops.FusedRopeForward, cases: ropeCases}.untyped(),
		suite[ops.FusedRopeArgs]{op: ops.FusedRopeBackward, cases: ropeCases}.untyped(),
		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdam, cases: adamCases}.untyped(),
		suite[ops.MultiTensorL2NormArgs]{op: ops.MultiTensorL2Norm, cases: l2normCases}.untyped(),
		suite[ops.MultiTensorScaleArgs]{op: ops.MultiTensorScale, cases: scaleCases}.untyped(),
		suite[ops.EmbeddingFwdArgs]{op: ops.EmbeddingFwd, cases: embeddingFwdCases}.untyped(),
		suite[ops.EmbeddingBwdArgs]{op: ops.EmbeddingBwd, cases: embeddingBwdCases}.untyped(),
		suite[ops.CrossEntropyFwdArgs]{op: ops.CrossEntropyFwd, cases: crossEntropyFwdCases}.untyped(),
		suite[ops.CrossEntropyBwdArgs]{op: ops.CrossEntropyBwd, cases: crossEntropyBwdCases, refresh: crossEntropyRefresh}.untyped(),
		suite[ops.RMSNormBwdAddArgs]{op: ops.RMSNormBwdAdd, cases: rmsnormBwdAddCases}.untyped(),
		suite[ops.LayerNormFwdArgs]{op: ops.LayerNormFwd, cases: layernormFwdCases}.untyped(),
		suite[ops.LayerNormBwdArgs]{op: ops.LayerNormBwd, cases: layernormBwdCases, refresh: layernormRefresh}.untyped(),
		suite[ops.ActivationArgs]{op: ops.GELU, cases: activationCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.QGELU, cases: activationCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.ReLU, cases: activationCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.SReLU, cases: activationCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.SiLU, cases: activationCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.GEGLU, cases: gluCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.GLU, cases: gluCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.QGEGLU, cases: gluCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.ReGLU, cases: gluCases}.untyped(),
		suite[ops.ActivationArgs]{op: ops.SReGLU, cases: gluCases}.untyped(),
		suite[ops.ClampedSwiGLUArgs]{op: ops.ClampedSwiGLU, cases: clampedSwiGLUCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DGELU, cases: dactivationCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DQGELU, cases: dactivationCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DReLU, cases: dactivationCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DSReLU, cases: dactivationCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DSiLU, cases: dactivationCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DGEGLU, cases: dgluCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DGLU, cases: dgluCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DQGEGLU, cases: dgluCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DReGLU, cases: dgluCases}.untyped(),
		suite[ops.DActivationArgs]{op: ops.DSReGLU, cases: dgluCases}.untyped(),
		suite[ops.ClampedDSwiGLUArgs]{op: ops.ClampedDSwiGLU, cases: clampedDSwiGLUCases}.untyped(),
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDGELU, cases: dbiasCases}.untyped(),
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDSiLU, cases: dbiasCases}.untyped(),
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDReLU, cases: dbiasCases}.untyped(),
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDQGELU, cases: dbiasCases}.untyped(),
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDSReLU, cases: dbiasCases}.untyped(),
		suite[ops.SoftmaxArgs]{op: ops.ScaledSoftmaxForward, cases: softmaxCases}.untyped(),
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledSoftmaxBackward, cases: softmaxBackwardCases}.untyped(),
		suite[ops.ScaledMaskedSoftmaxForwardArgs]{op: ops.ScaledMaskedSoftmaxForward, cases: maskedSoftmaxCases}.untyped(),
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledMaskedSoftmaxBackward, cases: softmaxBackwardCases}.untyped(),
		suite[ops.SoftmaxArgs]{op: ops.ScaledUpperTriangMaskedSoftmaxForward, cases: triangularSoftmaxCases}.untyped(),
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledUpperTriangMaskedSoftmaxBackward, cases: triangularSoftmaxBackwardCases}.untyped(),
		suite[ops.SoftmaxArgs]{op: ops.ScaledAlignedCausalMaskedSoftmaxForward, cases: alignedSoftmaxCases}.untyped(),
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledAlignedCausalMaskedSoftmaxBackward, cases: alignedSoftmaxBackwardCases}.untyped(),
		suite[ops.FusedQKVRopeArgs]{op: ops.FusedQKVRopeForward, cases: qkvRopeForwardCases}.untyped(),
		suite[ops.FusedQKVRopeArgs]{op: ops.FusedQKVRopeBackward, cases: qkvRopeBackwardCases}.untyped(),
		suite[ops.DropoutFwdArgs]{op: ops.DropoutFwd, cases: dropoutFwdCases}.untyped(),
		suite[ops.DropoutBwdArgs]{op: ops.DropoutBwd, cases: dropoutBwdCases, refresh: dropoutRefresh}.untyped(),

		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdamParamRemainder, cases: remainderCases, values: remainderValues}.untyped(),
		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdamFP8, cases: adamFP8Cases}.untyped(),
		suite[ops.MultiTensorAdamCapturableArgs]{op: ops.MultiTensorAdamCapturable, cases: capturableCases}.untyped(),
		suite[ops.MultiTensorAdamCapturableArgs]{op: ops.MultiTensorAdamCapturableMaster, cases: capturableMasterCases}.untyped(),
		suite[ops.MultiTensorSGDArgs]{op: ops.MultiTensorSGD, cases: sgdCases}.untyped(),
		suite[ops.MultiTensorScaleTensorArgs]{op: ops.MultiTensorScaleTensor, cases: scaleTensorCases}.untyped(),
		suite[ops.MultiTensorUnscaleL2NormArgs]{op: ops.MultiTensorUnscaleL2Norm, cases: unscaleL2NormCases}.untyped(),
		suite[ops.MultiTensorComputeScaleAndScaleInvArgs]{op: ops.MultiTensorComputeScaleAndScaleInv, cases: computeScaleCases}.untyped(),
		suite[ops.MultiTensorComputeScaleInvE8M0Args]{op: ops.MultiTensorComputeScaleInvE8M0, cases: computeE8M0Cases}.untyped(),
		suite[ops.ComputeAmaxArgs]{op: ops.ComputeAmax, cases: computeAmaxCases}.untyped(),
		suite[ops.FusedAmaxAndScaleUpdateArgs]{op: ops.FusedAmaxAndScaleUpdateAfterReduction, cases: fusedAmaxCases}.untyped(),
		suite[ops.QuantizeArgs]{op: ops.Quantize, cases: quantizeCases}.untyped(),
		suite[ops.DequantizeArgs]{op: ops.Dequantize, cases: dequantizeCases}.untyped(),
		suite[ops.BgradQuantizeArgs]{op: ops.BgradQuantize, cases: bgradCases}.untyped(),
		suite[ops.MultiTensorQuantizeArgs]{op: ops.MultiTensorQuantize, cases: multiQuantizeCases}.untyped(),
		suite[ops.SplitQuantizeArgs]{op: ops.SplitQuantize, cases: splitQuantizeCases}.untyped(),
		suite[ops.GroupQuantizeArgs]{op: ops.GroupQuantize, cases: groupQuantizeCases}.untyped(),
		suite[ops.BgradGroupQuantizeArgs]{op: ops.BgradGroupQuantize, cases: bgradGroupCases}.untyped(),
		suite[ops.CastToFP8Args]{op: ops.CastToFP8, cases: castToFP8Cases}.untyped(),
		suite[ops.FP8TransposeArgs]{op: ops.FP8Transpose, cases: fp8TransposeCases, bitwise: true}.untyped(),
		suite[ops.SwapFirstDimsArgs]{op: ops.SwapFirstDims, cases: swapFirstDimsCases, bitwise: true}.untyped(),
		suite[ops.NVFP4DataTransposeArgs]{op: ops.NVFP4DataTranspose, cases: nvfp4TransposeCases}.untyped(),
		suite[ops.NVFP42DMultiTensorTransposeArgs]{op: ops.NVFP42DMultiTensorTranspose, cases: nvfp4MultiTransposeCases}.untyped(),
		suite[ops.SplitsToOffsetsArgs]{op: ops.SplitsToOffsets, cases: splitsCases}.untyped(),
		suite[ops.PartialAmaxArgs]{op: ops.FP8BlockScalingComputePartialAmax, cases: blockPartialAmaxCases}.untyped(),
		suite[ops.PartialCastArgs]{op: ops.FP8BlockScalingPartialCast, cases: blockPartialCastCases}.untyped(),
		suite[ops.MXFP8PartialAmaxArgs]{op: ops.MXFP8ScalingComputePartialAmax, cases: mxfp8PartialAmaxCases}.untyped(),
		suite[ops.MXFP8PartialCastArgs]{op: ops.MXFP8ScalingPartialCast, cases: mxfp8PartialCastCases}.untyped(),
		suite[ops.PartialAmaxArgs]{op: ops.NVFP42DComputePartialAmax, cases: nvfp4PartialAmaxCases}.untyped(),
		suite[ops.NVFP4MultiTensorComputePartialAmaxArgs]{op: ops.NVFP4MultiTensorComputePartialAmax, cases: nvfp4MultiPartialAmaxCases}.untyped(),
		suite[ops.NVFP42DPartialCastArgs]{op: ops.NVFP42DPartialCast, cases: nvfp4PartialCastCases}.untyped(),
		suite[ops.NVFP4MultiTensor2DPartialCastArgs]{op: ops.NVFP4MultiTensor2DPartialCast, cases: nvfp4MultiPartialCastCases}.untyped(),
		suite[ops.NVFP4ComputeGlobalScaleArgs]{op: ops.NVFP4ComputeGlobalScale, cases: globalScaleCases}.untyped(),
		suite[ops.NVFP4ComputePerBlockScaleArgs]{op: ops.NVFP4ComputePerBlockScale, cases: perBlockScaleCases}.untyped(),
		suite[ops.NVFP4ExpandScaleToFP8Args]{op: ops.NVFP4ExpandScaleToFP8, cases: expandScaleCases}.untyped(),
		suite[ops.NVFP4FusedScaleArgs]{op: ops.NVFP4FusedScale, cases: fusedScaleCases}.untyped(),
		suite[ops.NVFP4MultiTensorFusedScaleArgs]{op: ops.NVFP4MultiTensorFusedScale, cases: multiFusedScaleCases}.untyped(),

		suite[ops.TEGeneralGroupedGemmArgs]{op: ops.TEGeneralGroupedGemm, cases: groupedGemmCases}.untyped(),
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForGroupedTensor, cases: groupedTensorCases}.untyped(),
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForDiscreteIn, cases: discreteInCases}.untyped(),
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForDiscreteOut, cases: discreteOutCases}.untyped(),
		suite[ops.MoEPermuteFwdArgs]{op: ops.MoEPermuteFwd, cases: moePermuteFwdCases}.untyped(),
		suite[ops.MoEUnpermuteArgs]{op: ops.MoEPermuteBwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh}.untyped(),
		suite[ops.MoEUnpermuteArgs]{op: ops.MoEUnpermuteFwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh}.untyped(),
		suite[ops.MoEUnpermuteBwdArgs]{op: ops.MoEUnpermuteBwd, cases: moeUnpermuteBwdCases, refresh: moeUnpermuteBwdRefresh}.untyped(),
		suite[ops.MoEPermuteWithRoutingMapArgs]{op: ops.MoEPermuteWithRoutingMap, cases: routingMapCases}.untyped(),
		suite[ops.MoEUnpermuteWithRoutingMapArgs]{op: ops.MoEUnpermuteWithRoutingMap, cases: unpermuteMapCases, refresh: unpermuteMapRefresh}.untyped(),
		suite[ops.MoESortChunksFwdArgs]{op: ops.MoESortChunksFwd, cases: sortChunksCases}.untyped(),
		suite[ops.MoESortChunksBwdArgs]{op: ops.MoESortChunksBwd, cases: sortChunksBwdCases, refresh: sortChunksRefresh}.untyped(),
		suite[ops.MultiRowPaddingArgs]{op: ops.FusedMultiRowPadding, cases: multiRowCases(false)}.untyped(),
		suite[ops.MultiRowPaddingArgs]{op: ops.FusedMultiRowUnpadding, cases: multiRowCases(true)}.untyped(),
		suite[ops.FusedTopkWithScoreFunctionFwdArgs]{op: ops.FusedTopkWithScoreFunctionFwd, cases: topkCases}.untyped(),
		suite[ops.FusedTopkWithScoreFunctionBwdArgs]{op: ops.FusedTopkWithScoreFunctionBwd, cases: topkBwdCases, refresh: topkRefresh}.untyped(),
		suite[ops.FusedScoreForMoEAuxLossFwdArgs]{op: ops.FusedScoreForMoEAuxLossFwd, cases: scoreCases}.untyped(),
		suite[ops.FusedScoreForMoEAuxLossBwdArgs]{op: ops.FusedScoreForMoEAuxLossBwd, cases: scoreBwdCases, refresh: scoreRefresh}.untyped(),
		suite[ops.FusedMoEAuxLossFwdArgs]{op: ops.FusedMoEAuxLossFwd, cases: auxLossCases}.untyped(),
		suite[ops.FusedMoEAuxLossBwdArgs]{op: ops.FusedMoEAuxLossBwd, cases: auxLossBwdCases, refresh: auxLossRefresh}.untyped(),
		suite[ops.FAPrepareFwdArgs]{op: ops.FAPrepareFwd, cases: faPrepareFwdCases}.untyped(),
		suite[ops.FAPrepareBwdArgs]{op: ops.FAPrepareBwd, cases: faPrepareBwdCases}.untyped(),
		suite[ops.CopyToKVCacheArgs]{op: ops.CopyToKVCache, cases: kvCacheCases}.untyped(),
		suite[ops.ConvertTHDArgs]{op: ops.ConvertTHDToBSHD, cases: convertTHDCases(false)}.untyped(),
		suite[ops.ConvertTHDArgs]{op: ops.ConvertBSHDToTHD, cases: convertTHDCases(true)}.untyped(),
		suite[ops.GatedDeltaNetForwardArgs]{op: ops.GatedDeltaNetForward, cases: deltaNetCases}.untyped(),
		suite[ops.THDGetPartitionedIndicesArgs]{op: ops.THDGetPartitionedIndices, cases: partitionCases}.untyped(),
		suite[ops.THDReadHalfTensorArgs]{op: ops.THDReadHalfTensor, cases: readHalfCases}.untyped(),
		suite[ops.THDReadSecondHalfLSEArgs]{op: ops.THDReadSecondHalfLSE, cases: readLSECases}.untyped(),
		suite[ops.THDSecondHalfLSECorrectionArgs]{op: ops.THDSecondHalfLSECorrection, cases: correctLSECases}.untyped(),
		suite[ops.THDOutCorrectionArgs]{op: ops.THDOutCorrection, cases: outCorrectionCases}.untyped(),
		suite[ops.THDGradCorrectionArgs]{op: ops.THDGradCorrection, cases: gradCorrectionCases}.untyped(),
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
