package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestGLU(t *testing.T) {
	for _, op := range []*opregistry.Op[ops.ActivationArgs]{ops.SwiGLU, ops.GLU, ops.GEGLU, ops.QGEGLU, ops.ReGLU, ops.SReGLU} {
		t.Run(op.Name(), func(t *testing.T) { testGLU(t, op) })
	}
}

func testGLU(t *testing.T, op *opregistry.Op[ops.ActivationArgs]) {
	type args = ops.ActivationArgs
	good := func() args { return args{Input: f32(2, 3, 8), Output: f32(2, 3, 4)} }
	testValidation(t, op, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"dtype", func(a *args) { a.Input = of(tensor.U8, 2, 3, 8) }, "input", "dtype f32, bf16, f16 or f64"},
		{"scalar input", func(a *args) { a.Input = f32() }, "input", "at least 1 axes"},
		{"scalar output", func(a *args) { a.Output = f32() }, "output", "at least 1 axes"},
		{"two dtypes", func(a *args) { a.Output = of(tensor.BF16, 2, 3, 4) }, "output", "the dtype of input, f32"},
		{"not half", func(a *args) { a.Output = f32(2, 3, 8) }, "output", "the axes of input [2 3 8] with half the last one"},
		{"axes", func(a *args) { a.Output = f32(6, 4) }, "output", "the axes of input [2 3 8] with half the last one"},
		{"rows", func(a *args) { a.Output = f32(3, 2, 4) }, "output", "the axes of input [2 3 8] with half the last one"},
		{"in place", func(a *args) { a.Output = view(a.Input, 2, 3, 4) }, "output", "memory apart from input"},
	})
	testAccepted(t, op, good, map[string]func(a *args){
		"empty":  func(a *args) { a.Input, a.Output = f32(3, 0), f32(3, 0) },
		"vector": func(a *args) { a.Input, a.Output = f32(6), f32(3) },
	})
	testOperands(t, op, good(), access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestDGLU(t *testing.T) {
	for _, op := range []*opregistry.Op[ops.DActivationArgs]{ops.DSwiGLU, ops.DGLU, ops.DGEGLU, ops.DQGEGLU, ops.DReGLU, ops.DSReGLU} {
		t.Run(op.Name(), func(t *testing.T) { testDGLU(t, op) })
	}
}

func testDGLU(t *testing.T, op *opregistry.Op[ops.DActivationArgs]) {
	type args = ops.DActivationArgs
	good := func() args { return args{Grad: f32(3, 4), FwdInput: f32(3, 8), Output: f32(3, 8)} }
	testValidation(t, op, good, []refusal[args]{
		{"no grad", func(a *args) { a.Grad = nil }, "grad", "a tensor"},
		{"no fwd_input", func(a *args) { a.FwdInput = nil }, "fwd_input", "a tensor"},
		{"not half", func(a *args) { a.Grad = f32(3, 3) }, "grad", "the axes of fwd_input [3 8] with half the last one"},
		{"dtype of grad", func(a *args) { a.Grad = of(tensor.F16, 3, 4) }, "grad", "the dtype of fwd_input, f32"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.F16, 3, 8) }, "output", "the dtype of fwd_input, f32"},
		{"shape of output", func(a *args) { a.Output = f32(8, 3) }, "output", "the shape of fwd_input, [3 8]"},
		{"output overlaps fwd_input", func(a *args) { a.Output = shifted(&a.FwdInput) }, "output", "the same view as fwd_input"},
		{"output over grad", func(a *args) { a.Grad = view(a.Output, 3, 4) }, "output", "memory apart from grad"},
	})
	testAccepted(t, op, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.FwdInput }})
	testOperands(t, op, good(), access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestClampedSwiGLU(t *testing.T) {
	type args = ops.ClampedSwiGLUArgs
	inf := float32(math.Inf(1))
	good := func() args { return args{Input: f32(3, 8), Output: f32(3, 4)} }
	testValidation(t, ops.ClampedSwiGLU, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"not half", func(a *args) { a.Output = f32(3, 8) }, "output", "the axes of input [3 8] with half the last one"},
		{"in place", func(a *args) { a.Output = view(a.Input, 3, 4) }, "output", "memory apart from input"},
		{"limit < 0", func(a *args) { a.Limit = ops.Float(-1) }, "limit", "a number >= 0"},
		{"limit NaN", func(a *args) { a.Limit = ops.Float(float32(math.NaN())) }, "limit", "a number >= 0"},
		{"alpha infinite", func(a *args) { a.Alpha = ops.Float(-inf) }, "alpha", "a finite number"},
		{"offset NaN", func(a *args) { a.GLULinearOffset = ops.Float(float32(math.NaN())) }, "glu_linear_offset", "a finite number"},
	})
	testAccepted(t, ops.ClampedSwiGLU, good, map[string]func(a *args){
		"constants": func(a *args) { a.Limit, a.Alpha, a.GLULinearOffset = ops.Float(0), ops.Float(-1), ops.Float(0) },
		"no limit":  func(a *args) { a.Limit = ops.Float(inf) },
	})
	testOperands(t, ops.ClampedSwiGLU, good(), access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestClampedDSwiGLU(t *testing.T) {
	type args = ops.ClampedDSwiGLUArgs
	good := func() args { return args{Grad: f32(3, 4), FwdInput: f32(3, 8), Output: f32(3, 8)} }
	testValidation(t, ops.ClampedDSwiGLU, good, []refusal[args]{
		{"no grad", func(a *args) { a.Grad = nil }, "grad", "a tensor"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"shape of output", func(a *args) { a.Output = f32(8, 3) }, "output", "the shape of fwd_input, [3 8]"},
		{"output over grad", func(a *args) { a.Grad = view(a.Output, 3, 4) }, "output", "memory apart from grad"},
		{"limit < 0", func(a *args) { a.Limit = ops.Float(-1) }, "limit", "a number >= 0"},
		{"alpha NaN", func(a *args) { a.Alpha = ops.Float(float32(math.NaN())) }, "alpha", "a finite number"},
		{"offset infinite", func(a *args) { a.GLULinearOffset = ops.Float(float32(math.Inf(1))) }, "glu_linear_offset", "a finite number"},
	})
	testAccepted(t, ops.ClampedDSwiGLU, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.FwdInput }})
	testOperands(t, ops.ClampedDSwiGLU, good(), access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
