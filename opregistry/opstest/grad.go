package opstest

import (
	"errors"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// pair is a backward op, the forward op of which it is the gradient, and the cases that compare
// them.
type pair struct {
	backward, forward opregistry.Handle
	cases             func() []gradCase
}

func gradients() []pair {
	return []pair{
		{gemm.GenericGemm, gemm.GenericGemm, gemmGradCases},
		{norm.RMSNormBwd, norm.RMSNormFwd, rmsnormGradCases},
		{activation.DSwiGLU, activation.SwiGLU, gluGradCases(activation.SwiGLU, activation.DSwiGLU)},
		{norm.ResidualAdd, norm.ResidualAdd, residualAddGradCases},
		{attention.FusedAttnBwd, attention.FusedAttnFwd, attnGradCases},
		{rope.FusedRopeBackward, rope.FusedRopeForward, ropeGradCases},
		{embedding.EmbeddingBwd, embedding.EmbeddingFwd, embeddingGradCases},
		{loss.CrossEntropyBwd, loss.CrossEntropyFwd, crossEntropyGradCases},
		{norm.RMSNormBwdAdd, norm.RMSNormFwd, rmsnormAddGradCases},
		{norm.LayerNormBwd, norm.LayerNormFwd, layernormGradCases},
		{activation.DGELU, activation.GELU, activationGradCases(activation.GELU, activation.DGELU)},
		{activation.DQGELU, activation.QGELU, activationGradCases(activation.QGELU, activation.DQGELU)},
		{activation.DReLU, activation.ReLU, activationGradCases(activation.ReLU, activation.DReLU)},
		{activation.DSReLU, activation.SReLU, activationGradCases(activation.SReLU, activation.DSReLU)},
		{activation.DSiLU, activation.SiLU, activationGradCases(activation.SiLU, activation.DSiLU)},
		{activation.DGEGLU, activation.GEGLU, gluGradCases(activation.GEGLU, activation.DGEGLU)},
		{activation.DGLU, activation.GLU, gluGradCases(activation.GLU, activation.DGLU)},
		{activation.DQGEGLU, activation.QGEGLU, gluGradCases(activation.QGEGLU, activation.DQGEGLU)},
		{activation.DReGLU, activation.ReGLU, gluGradCases(activation.ReGLU, activation.DReGLU)},
		{activation.DSReGLU, activation.SReGLU, gluGradCases(activation.SReGLU, activation.DSReGLU)},
		{activation.ClampedDSwiGLU, activation.ClampedSwiGLU, clampedGradCases},
		{activation.DBiasDGELU, activation.GELU, dbiasGradCases(activation.GELU, activation.DBiasDGELU)},
		{activation.DBiasDSiLU, activation.SiLU, dbiasGradCases(activation.SiLU, activation.DBiasDSiLU)},
		{activation.DBiasDReLU, activation.ReLU, dbiasGradCases(activation.ReLU, activation.DBiasDReLU)},
		{activation.DBiasDQGELU, activation.QGELU, dbiasGradCases(activation.QGELU, activation.DBiasDQGELU)},
		{activation.DBiasDSReLU, activation.SReLU, dbiasGradCases(activation.SReLU, activation.DBiasDSReLU)},
		{softmax.ScaledSoftmaxBackward, softmax.ScaledSoftmaxForward, softmaxGradCases(softmax.ScaledSoftmaxForward, softmax.ScaledSoftmaxBackward, 2, 2, 3, 4)},
		{softmax.ScaledUpperTriangMaskedSoftmaxBackward, softmax.ScaledUpperTriangMaskedSoftmaxForward, softmaxGradCases(softmax.ScaledUpperTriangMaskedSoftmaxForward, softmax.ScaledUpperTriangMaskedSoftmaxBackward, 2, 4, 4)},
		{softmax.ScaledAlignedCausalMaskedSoftmaxBackward, softmax.ScaledAlignedCausalMaskedSoftmaxForward, softmaxGradCases(softmax.ScaledAlignedCausalMaskedSoftmaxForward, softmax.ScaledAlignedCausalMaskedSoftmaxBackward, 1, 2, 5, 3)},
		{softmax.ScaledMaskedSoftmaxBackward, softmax.ScaledMaskedSoftmaxForward, maskedSoftmaxGradCases},
		{rope.FusedQKVRopeBackward, rope.FusedQKVRopeForward, qkvRopeGradCases},
		{dropoutops.DropoutBwd, dropoutops.DropoutFwd, dropoutGradCases},

		{gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemm, groupedGemmGradCases},
		{moe.MoEPermuteBwd, moe.MoEPermuteFwd, moePermuteGradCases},
		{moe.MoEUnpermuteBwd, moe.MoEUnpermuteFwd, moeUnpermuteGradCases},
		{moe.MoEUnpermuteWithRoutingMap, moe.MoEPermuteWithRoutingMap, routingMapGradCases},
		{moe.MoESortChunksBwd, moe.MoESortChunksFwd, sortChunksGradCases},
		{moe.FusedTopkWithScoreFunctionBwd, moe.FusedTopkWithScoreFunctionFwd, topkGradCases},
		{moe.FusedScoreForMoEAuxLossBwd, moe.FusedScoreForMoEAuxLossFwd, scoreGradCases},
		{moe.FusedMoEAuxLossBwd, moe.FusedMoEAuxLossFwd, auxLossGradCases},
		{attention.FAPrepareBwd, attention.FAPrepareFwd, faPrepareGradCases},
	}
}

func gradCasesOf(backward, forward opregistry.Handle) func() []gradCase {
	for _, p := range gradients() {
		if p.backward == backward && p.forward == forward {
			return p.cases
		}
	}
	return nil
}

// gradCase is one gradient to check.
type gradCase struct {
	name  string
	check func(T, opregistry.Impl, opregistry.Impl, *config)
}

// derivation is a scalar function Σ dy·y of the operands of forward calls, and
// the backward calls that write its gradient.
type derivation[F, B any] struct {
	forward  []F            // run in order, y is written by one of them
	backward []B            // run in order
	y, dy    *tensor.Tensor // of equal shape
	wrt      []derivative
	refresh  func(tensortest.TB, *opregistry.Exec, B, opregistry.Impl) error // as in suite
}

// derivative pairs an operand of the forward calls with its gradient.
type derivative struct {
	name  string
	x, dx *tensor.Tensor
}

// The steps of the central differences. The error of the stencil
//
//	f'(x) ≈ (8·(f(x+h) − f(x−h)) − (f(x+2h) − f(x−2h))) / 12h
//
// is h⁴·f⁽⁵⁾/30 plus the rounding of f divided by h. The fine step is a power of two: x ± 2h is
// exact even in f32 if x has few bits.
const (
	fineStep   = 0x1p-10 // for y in f64
	coarseStep = 0.05    // for y in f32
)

func gradient[F, B any](name string, fwdOp *opregistry.Op[F], bwdOp *opregistry.Op[B], make func(*stage) derivation[F, B]) gradCase {
	return gradCase{name: name, check: func(t T, impl, forward opregistry.Impl, cfg *config) {
		s := &stage{t: t}
		d := make(s)
		x := opregistry.NewExec(nil, 0)
		run := function(t, bwdOp, impl)
		for _, a := range d.backward {
			if err := bwdOp.Validate(a); err != nil {
				t.Fatalf("opstest: the case itself is wrong: %v", err)
			}
			if d.refresh != nil && cfg.forward != nil {
				if err := d.refresh(t, x, a, *cfg.forward); err != nil {
					t.Skipf("the forward impl declined: %v", err)
				}
			}
			if err := run(x, a); errors.Is(err, opregistry.ErrUnsupported) {
				t.Skipf("declined: %v", err)
			} else if err != nil {
				t.Fatalf("opstest: the impl failed: %v", err)
			}
		}
		loss := func() float64 { return d.loss(t, x, fwdOp, function(t, fwdOp, forward)) }
		for _, w := range d.wrt {
			numeric := d.differences(s, w.x, loss)
			if !tensortest.CloseTo(t, numeric, w.dx, d.tolerance(cfg)) {
				t.Errorf("opstest: the gradient with respect to %s is not that of central differences", w.name)
			}
		}
		s.intact(t)
	}}
}

// loss runs the forward calls and returns Σ dy·y.
func (d derivation[F, B]) loss(t tensortest.TB, x *opregistry.Exec, op *opregistry.Op[F], run opregistry.Func[F]) float64 {
	t.Helper()
	for _, a := range d.forward {
		if err := op.Validate(a); err != nil {
			t.Fatalf("opstest: the case itself is wrong: %v", err)
		}
		if err := run(x, a); err != nil {
			t.Fatalf("opstest: the forward oracle: %v", err)
		}
	}
	sum, dy := 0.0, d.dy.Float64s()
	for i, y := range d.y.Float64s() {
		sum += dy[i] * y
	}
	return sum
}

// differences returns the gradient of loss with respect to x. It restores the content of x.
func (d derivation[F, B]) differences(s *stage, x *tensor.Tensor, loss func() float64) []float64 {
	s.t.Helper()
	h := fineStep
	if d.y.DType() == tensor.F32 {
		h = coarseStep
	}
	v := x.Float64s()
	at := func(i int, value float64) float64 {
		v[i] = value
		s.fill(x, v)
		return loss()
	}
	out := make([]float64, len(v))
	for i, old := range v {
		out[i] = (8*(at(i, old+h)-at(i, old-h)) - (at(i, old+2*h) - at(i, old-2*h))) / (12 * h)
		v[i] = old
	}
	s.fill(x, v)
	return out
}

func (d derivation[F, B]) tolerance(cfg *config) tensortest.Tolerance {
	if tol, ok := cfg.tolerances[tensor.F64]; ok {
		return tol
	}
	if d.y.DType() == tensor.F32 {
		return coarseGradTolerance()
	}
	return gradTolerance()
}

// save runs a forward impl for the state that it saves, and returns its error if it declines.
func save[A any](t tensortest.TB, x *opregistry.Exec, op *opregistry.Op[A], forward opregistry.Impl, a A) error {
	t.Helper()
	if forward.Op != opregistry.Handle(op) {
		t.Fatalf("opstest: WithForward: got an impl of %s, want one of op %q", opName(forward), op.Name())
	}
	if err := op.Validate(a); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	err := function(t, op, forward)(x, a)
	if err != nil && !errors.Is(err, opregistry.ErrUnsupported) {
		t.Fatalf("opstest: the forward impl: %v", err)
	}
	return err
}

// gradTolerance bounds gradients in f64 of magnitude 1 against central differences. The saved
// state, which is f32, limits the precision.
func gradTolerance() tensor.Tolerance { return tensor.Tolerance{Abs: 1e-6, Rel: 1e-6} }

// coarseGradTolerance is for losses that the forward op stores in f32: their
// rounding, 2⁻²⁴, is divided by the step of the difference.
func coarseGradTolerance() tensor.Tolerance { return tensor.Tolerance{Abs: 2e-5, Rel: 1e-5} }
