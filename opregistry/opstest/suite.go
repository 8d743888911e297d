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

// suite is what is known about testing one op.
type suite[A any] struct {
	op *opregistry.Op[A]

	// cases returns the calls with operands of one storage dtype.
	cases func(tensor.DType) []testCase[A]

	// refresh overwrites the saved state in the operands of a backward call by
	// running a forward impl, whose decline it returns. Nil for other ops.
	refresh func(tensortest.TB, *opregistry.Exec, A, opregistry.Impl) error

	// values returns what is compared with the oracle instead of the operands that
	// are written, where single operands have no meaning of their own. Nil for
	// most ops.
	values func(A) []opregistry.Operand

	// bitwise asks for the oracle's bits: the op copies patterns, of NaN, too.
	bitwise bool
}

// anySuite is a suite of any argument type.
type anySuite interface {
	handle() opregistry.Handle
	// run returns how many cases the impl passed and how many it declined.
	run(T, opregistry.Impl, opregistry.Impl, *config) (served, declined int)
	workloads(d tensor.DType, subjects []Subject, order func(a, b int) int) ([]*Workload, error)
	try(opregistry.Impl, *config) (Trial, error)
}

func suites() []anySuite {
	return []anySuite{
		suite[ops.GenericGemmArgs]{op: ops.GenericGemm, cases: gemmCases},
		suite[ops.RMSNormFwdArgs]{op: ops.RMSNormFwd, cases: rmsnormFwdCases},
		suite[ops.RMSNormBwdArgs]{op: ops.RMSNormBwd, cases: rmsnormBwdCases, refresh: rmsnormRefresh},
		suite[ops.SwiGLUArgs]{op: ops.SwiGLU, cases: swigluCases},
		suite[ops.DSwiGLUArgs]{op: ops.DSwiGLU, cases: dswigluCases},
		suite[ops.ResidualAddArgs]{op: ops.ResidualAdd, cases: residualAddCases},
		suite[ops.FusedAttnFwdArgs]{op: ops.FusedAttnFwd, cases: attnFwdCases},
		suite[ops.FusedAttnBwdArgs]{op: ops.FusedAttnBwd, cases: attnBwdCases, refresh: attnRefresh},
		suite[ops.FusedRopeArgs]{op: ops.FusedRopeForward, cases: ropeCases},
		suite[ops.FusedRopeArgs]{op: ops.FusedRopeBackward, cases: ropeCases},
		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdam, cases: adamCases},
		suite[ops.MultiTensorL2NormArgs]{op: ops.MultiTensorL2Norm, cases: l2normCases},
		suite[ops.MultiTensorScaleArgs]{op: ops.MultiTensorScale, cases: scaleCases},
		suite[ops.EmbeddingFwdArgs]{op: ops.EmbeddingFwd, cases: embeddingFwdCases},
		suite[ops.EmbeddingBwdArgs]{op: ops.EmbeddingBwd, cases: embeddingBwdCases},
		suite[ops.CrossEntropyFwdArgs]{op: ops.CrossEntropyFwd, cases: crossEntropyFwdCases},
		suite[ops.CrossEntropyBwdArgs]{op: ops.CrossEntropyBwd, cases: crossEntropyBwdCases, refresh: crossEntropyRefresh},
		suite[ops.RMSNormBwdAddArgs]{op: ops.RMSNormBwdAdd, cases: rmsnormBwdAddCases},
		suite[ops.LayerNormFwdArgs]{op: ops.LayerNormFwd, cases: layernormFwdCases},
		suite[ops.LayerNormBwdArgs]{op: ops.LayerNormBwd, cases: layernormBwdCases, refresh: layernormRefresh},
		suite[ops.ActivationArgs]{op: ops.GELU, cases: activationCases},
		suite[ops.ActivationArgs]{op: ops.QGELU, cases: activationCases},
		suite[ops.ActivationArgs]{op: ops.ReLU, cases: activationCases},
		suite[ops.ActivationArgs]{op: ops.SReLU, cases: activationCases},
		suite[ops.ActivationArgs]{op: ops.SiLU, cases: activationCases},
		suite[ops.ActivationArgs]{op: ops.GEGLU, cases: gluCases},
		suite[ops.ActivationArgs]{op: ops.GLU, cases: gluCases},
		suite[ops.ActivationArgs]{op: ops.QGEGLU, cases: gluCases},
		suite[ops.ActivationArgs]{op: ops.ReGLU, cases: gluCases},
		suite[ops.ActivationArgs]{op: ops.SReGLU, cases: gluCases},
		suite[ops.ClampedSwiGLUArgs]{op: ops.ClampedSwiGLU, cases: clampedSwiGLUCases},
		suite[ops.DActivationArgs]{op: ops.DGELU, cases: dactivationCases},
		suite[ops.DActivationArgs]{op: ops.DQGELU, cases: dactivationCases},
		suite[ops.DActivationArgs]{op: ops.DReLU, cases: dactivationCases},
		suite[ops.DActivationArgs]{op: ops.DSReLU, cases: dactivationCases},
		suite[ops.DActivationArgs]{op: ops.DSiLU, cases: dactivationCases},
		suite[ops.DActivationArgs]{op: ops.DGEGLU, cases: dgluCases},
		suite[ops.DActivationArgs]{op: ops.DGLU, cases: dgluCases},
		suite[ops.DActivationArgs]{op: ops.DQGEGLU, cases: dgluCases},
		suite[ops.DActivationArgs]{op: ops.DReGLU, cases: dgluCases},
		suite[ops.DActivationArgs]{op: ops.DSReGLU, cases: dgluCases},
		suite[ops.ClampedDSwiGLUArgs]{op: ops.ClampedDSwiGLU, cases: clampedDSwiGLUCases},
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDGELU, cases: dbiasCases},
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDSiLU, cases: dbiasCases},
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDReLU, cases: dbiasCases},
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDQGELU, cases: dbiasCases},
		suite[ops.DBiasDActivationArgs]{op: ops.DBiasDSReLU, cases: dbiasCases},
		suite[ops.SoftmaxArgs]{op: ops.ScaledSoftmaxForward, cases: softmaxCases},
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledSoftmaxBackward, cases: softmaxBackwardCases},
		suite[ops.ScaledMaskedSoftmaxForwardArgs]{op: ops.ScaledMaskedSoftmaxForward, cases: maskedSoftmaxCases},
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledMaskedSoftmaxBackward, cases: softmaxBackwardCases},
		suite[ops.SoftmaxArgs]{op: ops.ScaledUpperTriangMaskedSoftmaxForward, cases: triangularSoftmaxCases},
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledUpperTriangMaskedSoftmaxBackward, cases: triangularSoftmaxBackwardCases},
		suite[ops.SoftmaxArgs]{op: ops.ScaledAlignedCausalMaskedSoftmaxForward, cases: alignedSoftmaxCases},
		suite[ops.SoftmaxBackwardArgs]{op: ops.ScaledAlignedCausalMaskedSoftmaxBackward, cases: alignedSoftmaxBackwardCases},
		suite[ops.FusedQKVRopeArgs]{op: ops.FusedQKVRopeForward, cases: qkvRopeForwardCases},
		suite[ops.FusedQKVRopeArgs]{op: ops.FusedQKVRopeBackward, cases: qkvRopeBackwardCases},
		suite[ops.DropoutFwdArgs]{op: ops.DropoutFwd, cases: dropoutFwdCases},
		suite[ops.DropoutBwdArgs]{op: ops.DropoutBwd, cases: dropoutBwdCases, refresh: dropoutRefresh},

		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdamParamRemainder, cases: remainderCases, values: remainderValues},
		suite[ops.MultiTensorAdamArgs]{op: ops.MultiTensorAdamFP8, cases: adamFP8Cases},
		suite[ops.MultiTensorAdamCapturableArgs]{op: ops.MultiTensorAdamCapturable, cases: capturableCases},
		suite[ops.MultiTensorAdamCapturableArgs]{op: ops.MultiTensorAdamCapturableMaster, cases: capturableMasterCases},
		suite[ops.MultiTensorSGDArgs]{op: ops.MultiTensorSGD, cases: sgdCases},
		suite[ops.MultiTensorScaleTensorArgs]{op: ops.MultiTensorScaleTensor, cases: scaleTensorCases},
		suite[ops.MultiTensorUnscaleL2NormArgs]{op: ops.MultiTensorUnscaleL2Norm, cases: unscaleL2NormCases},
		suite[ops.MultiTensorComputeScaleAndScaleInvArgs]{op: ops.MultiTensorComputeScaleAndScaleInv, cases: computeScaleCases},
		suite[ops.MultiTensorComputeScaleInvE8M0Args]{op: ops.MultiTensorComputeScaleInvE8M0, cases: computeE8M0Cases},
		suite[ops.ComputeAmaxArgs]{op: ops.ComputeAmax, cases: computeAmaxCases},
		suite[ops.FusedAmaxAndScaleUpdateArgs]{op: ops.FusedAmaxAndScaleUpdateAfterReduction, cases: fusedAmaxCases},
		suite[ops.QuantizeArgs]{op: ops.Quantize, cases: quantizeCases},
		suite[ops.DequantizeArgs]{op: ops.Dequantize, cases: dequantizeCases},
		suite[ops.BgradQuantizeArgs]{op: ops.BgradQuantize, cases: bgradCases},
		suite[ops.MultiTensorQuantizeArgs]{op: ops.MultiTensorQuantize, cases: multiQuantizeCases},
		suite[ops.SplitQuantizeArgs]{op: ops.SplitQuantize, cases: splitQuantizeCases},
		suite[ops.GroupQuantizeArgs]{op: ops.GroupQuantize, cases: groupQuantizeCases},
		suite[ops.BgradGroupQuantizeArgs]{op: ops.BgradGroupQuantize, cases: bgradGroupCases},
		suite[ops.CastToFP8Args]{op: ops.CastToFP8, cases: castToFP8Cases},
		suite[ops.FP8TransposeArgs]{op: ops.FP8Transpose, cases: fp8TransposeCases, bitwise: true},
		suite[ops.SwapFirstDimsArgs]{op: ops.SwapFirstDims, cases: swapFirstDimsCases, bitwise: true},
		suite[ops.NVFP4DataTransposeArgs]{op: ops.NVFP4DataTranspose, cases: nvfp4TransposeCases},
		suite[ops.NVFP42DMultiTensorTransposeArgs]{op: ops.NVFP42DMultiTensorTranspose, cases: nvfp4MultiTransposeCases},
		suite[ops.SplitsToOffsetsArgs]{op: ops.SplitsToOffsets, cases: splitsCases},
		suite[ops.PartialAmaxArgs]{op: ops.FP8BlockScalingComputePartialAmax, cases: blockPartialAmaxCases},
		suite[ops.PartialCastArgs]{op: ops.FP8BlockScalingPartialCast, cases: blockPartialCastCases},
		suite[ops.MXFP8PartialAmaxArgs]{op: ops.MXFP8ScalingComputePartialAmax, cases: mxfp8PartialAmaxCases},
		suite[ops.MXFP8PartialCastArgs]{op: ops.MXFP8ScalingPartialCast, cases: mxfp8PartialCastCases},
		suite[ops.PartialAmaxArgs]{op: ops.NVFP42DComputePartialAmax, cases: nvfp4PartialAmaxCases},
		suite[ops.NVFP4MultiTensorComputePartialAmaxArgs]{op: ops.NVFP4MultiTensorComputePartialAmax, cases: nvfp4MultiPartialAmaxCases},
		suite[ops.NVFP42DPartialCastArgs]{op: ops.NVFP42DPartialCast, cases: nvfp4PartialCastCases},
		suite[ops.NVFP4MultiTensor2DPartialCastArgs]{op: ops.NVFP4MultiTensor2DPartialCast, cases: nvfp4MultiPartialCastCases},
		suite[ops.NVFP4ComputeGlobalScaleArgs]{op: ops.NVFP4ComputeGlobalScale, cases: globalScaleCases},
		suite[ops.NVFP4ComputePerBlockScaleArgs]{op: ops.NVFP4ComputePerBlockScale, cases: perBlockScaleCases},
		suite[ops.NVFP4ExpandScaleToFP8Args]{op: ops.NVFP4ExpandScaleToFP8, cases: expandScaleCases},
		suite[ops.NVFP4FusedScaleArgs]{op: ops.NVFP4FusedScale, cases: fusedScaleCases},
		suite[ops.NVFP4MultiTensorFusedScaleArgs]{op: ops.NVFP4MultiTensorFusedScale, cases: multiFusedScaleCases},

		suite[ops.TEGeneralGroupedGemmArgs]{op: ops.TEGeneralGroupedGemm, cases: groupedGemmCases},
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForGroupedTensor, cases: groupedTensorCases},
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForDiscreteIn, cases: discreteInCases},
		suite[ops.GroupedGemmArgs]{op: ops.TEGeneralGroupedGemmForDiscreteOut, cases: discreteOutCases},
		suite[ops.MoEPermuteFwdArgs]{op: ops.MoEPermuteFwd, cases: moePermuteFwdCases},
		suite[ops.MoEUnpermuteArgs]{op: ops.MoEPermuteBwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh},
		suite[ops.MoEUnpermuteArgs]{op: ops.MoEUnpermuteFwd, cases: moeUnpermuteCases, refresh: moeUnpermuteRefresh},
		suite[ops.MoEUnpermuteBwdArgs]{op: ops.MoEUnpermuteBwd, cases: moeUnpermuteBwdCases, refresh: moeUnpermuteBwdRefresh},
		suite[ops.MoEPermuteWithRoutingMapArgs]{op: ops.MoEPermuteWithRoutingMap, cases: routingMapCases},
		suite[ops.MoEUnpermuteWithRoutingMapArgs]{op: ops.MoEUnpermuteWithRoutingMap, cases: unpermuteMapCases, refresh: unpermuteMapRefresh},
		suite[ops.MoESortChunksFwdArgs]{op: ops.MoESortChunksFwd, cases: sortChunksCases},
		suite[ops.MoESortChunksBwdArgs]{op: ops.MoESortChunksBwd, cases: sortChunksBwdCases, refresh: sortChunksRefresh},
		suite[ops.MultiRowPaddingArgs]{op: ops.FusedMultiRowPadding, cases: multiRowCases(false)},
		suite[ops.MultiRowPaddingArgs]{op: ops.FusedMultiRowUnpadding, cases: multiRowCases(true)},
		suite[ops.FusedTopkWithScoreFunctionFwdArgs]{op: ops.FusedTopkWithScoreFunctionFwd, cases: topkCases},
		suite[ops.FusedTopkWithScoreFunctionBwdArgs]{op: ops.FusedTopkWithScoreFunctionBwd, cases: topkBwdCases, refresh: topkRefresh},
		suite[ops.FusedScoreForMoEAuxLossFwdArgs]{op: ops.FusedScoreForMoEAuxLossFwd, cases: scoreCases},
		suite[ops.FusedScoreForMoEAuxLossBwdArgs]{op: ops.FusedScoreForMoEAuxLossBwd, cases: scoreBwdCases, refresh: scoreRefresh},
		suite[ops.FusedMoEAuxLossFwdArgs]{op: ops.FusedMoEAuxLossFwd, cases: auxLossCases},
		suite[ops.FusedMoEAuxLossBwdArgs]{op: ops.FusedMoEAuxLossBwd, cases: auxLossBwdCases, refresh: auxLossRefresh},
		suite[ops.FAPrepareFwdArgs]{op: ops.FAPrepareFwd, cases: faPrepareFwdCases},
		suite[ops.FAPrepareBwdArgs]{op: ops.FAPrepareBwd, cases: faPrepareBwdCases},
		suite[ops.CopyToKVCacheArgs]{op: ops.CopyToKVCache, cases: kvCacheCases},
		suite[ops.ConvertTHDArgs]{op: ops.ConvertTHDToBSHD, cases: convertTHDCases(false)},
		suite[ops.ConvertTHDArgs]{op: ops.ConvertBSHDToTHD, cases: convertTHDCases(true)},
		suite[ops.GatedDeltaNetForwardArgs]{op: ops.GatedDeltaNetForward, cases: deltaNetCases},
		suite[ops.THDGetPartitionedIndicesArgs]{op: ops.THDGetPartitionedIndices, cases: partitionCases},
		suite[ops.THDReadHalfTensorArgs]{op: ops.THDReadHalfTensor, cases: readHalfCases},
		suite[ops.THDReadSecondHalfLSEArgs]{op: ops.THDReadSecondHalfLSE, cases: readLSECases},
		suite[ops.THDSecondHalfLSECorrectionArgs]{op: ops.THDSecondHalfLSECorrection, cases: correctLSECases},
		suite[ops.THDOutCorrectionArgs]{op: ops.THDOutCorrection, cases: outCorrectionCases},
		suite[ops.THDGradCorrectionArgs]{op: ops.THDGradCorrection, cases: gradCorrectionCases},
	}
}

func suiteOf(op opregistry.Handle) anySuite {
	for _, s := range suites() {
		if s.handle() == op {
			return s
		}
	}
	return nil
}

func (s suite[A]) handle() opregistry.Handle { return s.op }

// runner is one run of a suite.
type runner[A any] struct {
	suite[A]
	cfg          *config
	impl, oracle opregistry.Func[A]
	serial, many *opregistry.Exec
	served       []testCase[A]
	declined     int
}

func (s suite[A]) run(t T, impl, oracle opregistry.Impl, cfg *config) (served, declined int) {
	t.Helper()
	if impl.Determinism != opregistry.DeterminismUndeclared {
		held := *cfg
		held.irreproducible, cfg = false, &held
	}
	r := &runner[A]{
		suite: s, cfg: cfg, impl: function(t, s.op, impl), oracle: function(t, s.op, oracle),
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

func (r *runner[A]) run(t T, name string, f func(T)) {
	t.Helper()
	if r.cfg.progress != nil {
		r.cfg.progress(name)
	}
	t.Run(name, f)
}

// function returns what runs an impl. It declines what the impl's Support rules out.
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
type staged[A any] struct {
	stage    *stage
	args     A
	operands []opregistry.Operand
	before   [][]byte // by operand
}

func (r *runner[A]) stage(t tensortest.TB, c testCase[A]) *staged[A] {
	t.Helper()
	s := &stage{t: t}
	call := &staged[A]{stage: s, args: c.make(s)}
	if err := r.op.Validate(call.args); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	call.operands = r.op.Operands(call.args)
	return call
}

// check runs one case.
func (r *runner[A]) check(t T, d tensor.DType, c testCase[A]) {
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

// call makes the operands of a case, runs the impl and checks everything that
// needs no oracle. The error is that of a declined call.
func (r *runner[A]) call(t tensortest.TB, c testCase[A], x *opregistry.Exec) (*staged[A], error) {
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

// ready makes the operands of a case for the impl under test and remembers what
// they hold. The error is that of a forward impl that declined.
func (r *runner[A]) ready(t tensortest.TB, c testCase[A]) (*staged[A], error) {
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
func (r *runner[A]) guard(x *opregistry.Exec, a A) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return r.impl(x, a)
}

// inspect checks that a call changed nothing but what it may write, and nothing
// at all when it declined.
func (r *runner[A]) inspect(t tensortest.TB, call *staged[A], err error) {
	t.Helper()
	declined := errors.Is(err, opregistry.ErrUnsupported)
	for i, o := range call.operands {
		if !declined && (o.Access != opregistry.Read || aliased(call.operands, i)) {
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

// aliased reports whether operand i, which is read, shares memory with one that
// is written.
func aliased(operands []opregistry.Operand, i int) bool {
	return slices.ContainsFunc(operands, func(o opregistry.Operand) bool {
		return o.Access != opregistry.Read && tensor.Overlap(o.Tensor, operands[i].Tensor)
	})
}

func (r *runner[A]) compare(t tensortest.TB, want, got *staged[A]) {
	t.Helper()
	wanted, operands := want.operands, got.operands
	if r.values != nil {
		wanted, operands = r.values(want.args), r.values(got.args)
	}
	for i, o := range operands {
		if o.Access == opregistry.Read {
			continue
		}
		tol := r.cfg.tolerance(r.op.Name(), o.Tensor.DType())
		if !tensortest.Close(t, wanted[i].Tensor, o.Tensor, tol) || r.bitwise && !bytes.Equal(tensortest.Bytes(wanted[i].Tensor), tensortest.Bytes(o.Tensor)) {
			t.Errorf("opstest: operand %q is not what the oracle computes", o.Name)
		}
	}
}

// same requires equal results bit for bit.
func (r *runner[A]) same(t tensortest.TB, one, other *staged[A], when string) {
	t.Helper()
	for i, o := range one.operands {
		if o.Access != opregistry.Read && !bytes.Equal(tensortest.Bytes(o.Tensor), tensortest.Bytes(other.operands[i].Tensor)) {
			t.Errorf("opstest: operand %q differs %s", o.Name, when)
		}
	}
}

// together runs cases from several goroutines on one Exec.
func (r *runner[A]) together(t T) {
	const callers, rounds = 4, 8
	step := max(1, len(r.served)/rounds)
	for i := 0; i < len(r.served); i += step {
		c := r.served[i]
		alone, err := r.call(t, c, r.serial)
		if err != nil {
			t.Fatalf("opstest: %s: declined what it had served: %v", c.name, err)
		}
		calls := make([]*staged[A], callers)
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
