package opstest

import (
	"errors"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Gradient is a backward op, the forward op of which it is the gradient, and the cases that compare
// them.
type Gradient struct {
	Backward, Forward opregistry.Handle
	Cases             func() []GradCase
}

// GradCase is one gradient to check.
type GradCase struct {
	name  string
	check func(T, opregistry.Impl, opregistry.Impl, *config)
}

// Derivation is a scalar function Σ dy·y of the operands of forward calls, and
// the backward calls that write its gradient.
type Derivation[F, B any] struct {
	Forward  []F            // run in order, y is written by one of them
	Backward []B            // run in order
	Y, DY    *tensor.Tensor // of equal shape
	Wrt      []Derivative
	Refresh  func(tensortest.TB, *opregistry.Exec, B, opregistry.Impl) error // as in suite
}

// Derivative pairs an operand of the forward calls with its gradient.
type Derivative struct {
	Name  string
	X, DX *tensor.Tensor
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

func NewGradCase[F, B any](name string, fwdOp *opregistry.Op[F], bwdOp *opregistry.Op[B], make func(*Stage) Derivation[F, B]) GradCase {
	return GradCase{name: name, check: func(t T, impl, forward opregistry.Impl, cfg *config) {
		s := &Stage{T: t}
		d := make(s)
		u := derivation{y: d.Y, dy: d.DY, wrt: d.Wrt}
		for i := range d.Forward {
			u.forward = append(u.forward, fwdOp.At(&d.Forward[i]))
		}
		for i := range d.Backward {
			u.backward = append(u.backward, bwdOp.At(&d.Backward[i]))
		}
		if refresh := d.Refresh; refresh != nil {
			u.refresh = func(t tensortest.TB, x *opregistry.Exec, a opregistry.Call, forward opregistry.Impl) error {
				return refresh(t, x, *opregistry.ArgsOf[B](a), forward)
			}
		}
		u.check(t, s, cfg, function(t, bwdOp, impl), function(t, fwdOp, forward))
	}}
}

// derivation is a Derivation whose calls do not have the type of their arguments.
type derivation struct {
	forward, backward []opregistry.Call
	y, dy             *tensor.Tensor
	wrt               []Derivative
	refresh           func(tensortest.TB, *opregistry.Exec, opregistry.Call, opregistry.Impl) error
}

// check compares gradients with central differences of the forward calls.
func (d *derivation) check(t T, s *Stage, cfg *config, run, forward runFunc) {
	x := opregistry.NewExec(nil, 0)
	for _, a := range d.backward {
		if err := a.Validate(); err != nil {
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
	loss := func() float64 { return d.loss(t, x, forward) }
	for _, w := range d.wrt {
		numeric := d.differences(s, w.X, loss)
		if !tensortest.CloseTo(t, numeric, w.DX, d.tolerance(cfg)) {
			t.Errorf("opstest: the gradient with respect to %s is not that of central differences", w.Name)
		}
	}
	s.intact(t)
}

// loss runs the forward calls and returns Σ dy·y.
func (d *derivation) loss(t tensortest.TB, x *opregistry.Exec, run runFunc) float64 {
	t.Helper()
	for _, a := range d.forward {
		if err := a.Validate(); err != nil {
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
func (d *derivation) differences(s *Stage, x *tensor.Tensor, loss func() float64) []float64 {
	s.T.Helper()
	h := fineStep
	if d.y.DType() == tensor.F32 {
		h = coarseStep
	}
	v := x.Float64s()
	at := func(i int, value float64) float64 {
		v[i] = value
		s.Fill(x, v)
		return loss()
	}
	out := make([]float64, len(v))
	for i, old := range v {
		out[i] = (8*(at(i, old+h)-at(i, old-h)) - (at(i, old+2*h) - at(i, old-2*h))) / (12 * h)
		v[i] = old
	}
	s.Fill(x, v)
	return out
}

func (d *derivation) tolerance(cfg *config) tensortest.Tolerance {
	if tol, ok := cfg.tolerances[tensor.F64]; ok {
		return tol
	}
	if d.y.DType() == tensor.F32 {
		return coarseGradTolerance()
	}
	return gradTolerance()
}

// RunForward runs a forward impl for the state that it saves, and returns its error if it declines.
func RunForward[A any](t tensortest.TB, x *opregistry.Exec, op *opregistry.Op[A], forward opregistry.Impl, a A) error {
	t.Helper()
	if forward.Op != opregistry.Handle(op) {
		t.Fatalf("opstest: WithForward: got an impl of %s, want one of op %q", opName(forward), op.Name())
	}
	if err := op.Validate(a); err != nil {
		t.Fatalf("opstest: the case itself is wrong: %v", err)
	}
	err := function(t, op, forward)(x, op.At(&a))
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
