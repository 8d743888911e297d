package activation_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestGLU(t *testing.T) {
	for _, op := range []*opregistry.Op[activation.ActivationArgs]{activation.SwiGLU, activation.GLU, activation.GEGLU, activation.GEGLUErf, activation.QGEGLU, activation.ReGLU, activation.SReGLU} {
		t.Run(op.Name(), func(t *testing.T) { testGLU(t, op) })
	}
}

func testGLU(t *testing.T, op *opregistry.Op[activation.ActivationArgs]) {
	type args = activation.ActivationArgs
	good := func() args { return args{Input: checktest.F32(2, 3, 8), Output: checktest.F32(2, 3, 4)} }
	checktest.Validation(t, op, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "dtype", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.U8, 2, 3, 8) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "scalar input", Edit: func(a *args) { a.Input = checktest.F32() }, Operand: "input", Want: "shape ["},
		{Name: "scalar output", Edit: func(a *args) { a.Output = checktest.F32() }, Operand: "output", Want: "shape ["},
		{Name: "two dtypes", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.BF16, 2, 3, 4) }, Operand: "output", Want: "the dtype of input, f32"},
		{Name: "not half", Edit: func(a *args) { a.Output = checktest.F32(2, 3, 8) }, Operand: "output", Want: "shape [2 3 4], as [.. h]"},
		{Name: "axes", Edit: func(a *args) { a.Output = checktest.F32(6, 4) }, Operand: "output", Want: "shape [2 3 4], as [.. h]"},
		{Name: "rows", Edit: func(a *args) { a.Output = checktest.F32(3, 2, 4) }, Operand: "output", Want: "shape [2 3 4], as [.. h]"},
		{Name: "in place", Edit: func(a *args) { a.Output = checktest.View(a.Input, 2, 3, 4) }, Operand: "output", Want: "memory apart from input"},
	})
	checktest.Accepted(t, op, good, map[string]func(a *args){
		"empty":  func(a *args) { a.Input, a.Output = checktest.F32(3, 0), checktest.F32(3, 0) },
		"vector": func(a *args) { a.Input, a.Output = checktest.F32(6), checktest.F32(3) },
	})
	checktest.Operands(t, op, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestDGLU(t *testing.T) {
	for _, op := range []*opregistry.Op[activation.DActivationArgs]{activation.DSwiGLU, activation.DGLU, activation.DGEGLU, activation.DGEGLUErf, activation.DQGEGLU, activation.DReGLU, activation.DSReGLU} {
		t.Run(op.Name(), func(t *testing.T) { testDGLU(t, op) })
	}
}

func testDGLU(t *testing.T, op *opregistry.Op[activation.DActivationArgs]) {
	type args = activation.DActivationArgs
	good := func() args {
		return args{Grad: checktest.F32(3, 4), FwdInput: checktest.F32(3, 8), Output: checktest.F32(3, 8)}
	}
	checktest.Validation(t, op, good, []checktest.Refusal[args]{
		{Name: "no grad", Edit: func(a *args) { a.Grad = nil }, Operand: "grad", Want: "a tensor"},
		{Name: "no fwd_input", Edit: func(a *args) { a.FwdInput = nil }, Operand: "fwd_input", Want: "a tensor"},
		{Name: "not half", Edit: func(a *args) { a.Grad = checktest.F32(3, 3) }, Operand: "grad", Want: "shape [3 4], as [.. h]"},
		{Name: "dtype of grad", Edit: func(a *args) { a.Grad = checktest.Zeros(tensor.F16, 3, 4) }, Operand: "grad", Want: "the dtype of fwd_input, f32"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F16, 3, 8) }, Operand: "output", Want: "the dtype of fwd_input, f32"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(8, 3) }, Operand: "output", Want: "the shape of fwd_input, [3 8]"},
		{Name: "output overlaps fwd_input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.FwdInput) }, Operand: "output", Want: "the same view as fwd_input"},
		{Name: "output over grad", Edit: func(a *args) { a.Grad = checktest.View(a.Output, 3, 4) }, Operand: "output", Want: "memory apart from grad"},
	})
	checktest.Accepted(t, op, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.FwdInput }})
	checktest.Operands(t, op, good(), checktest.Access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestClampedSwiGLU(t *testing.T) {
	type args = activation.ClampedSwiGLUArgs
	inf := float32(math.Inf(1))
	good := func() args { return args{Input: checktest.F32(3, 8), Output: checktest.F32(3, 4)} }
	checktest.Validation(t, activation.ClampedSwiGLU, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "not half", Edit: func(a *args) { a.Output = checktest.F32(3, 8) }, Operand: "output", Want: "shape [3 4], as [.. h]"},
		{Name: "in place", Edit: func(a *args) { a.Output = checktest.View(a.Input, 3, 4) }, Operand: "output", Want: "memory apart from input"},
		{Name: "limit < 0", Edit: func(a *args) { a.Limit = opregistry.Float(-1) }, Operand: "limit", Want: "a number >= 0"},
		{Name: "limit NaN", Edit: func(a *args) { a.Limit = opregistry.Float(float32(math.NaN())) }, Operand: "limit", Want: "a number >= 0"},
		{Name: "alpha infinite", Edit: func(a *args) { a.Alpha = opregistry.Float(-inf) }, Operand: "alpha", Want: "a finite number"},
		{Name: "offset NaN", Edit: func(a *args) { a.GLULinearOffset = opregistry.Float(float32(math.NaN())) }, Operand: "glu_linear_offset", Want: "a finite number"},
	})
	checktest.Accepted(t, activation.ClampedSwiGLU, good, map[string]func(a *args){
		"constants": func(a *args) {
			a.Limit, a.Alpha, a.GLULinearOffset = opregistry.Float(0), opregistry.Float(-1), opregistry.Float(0)
		},
		"no limit": func(a *args) { a.Limit = opregistry.Float(inf) },
	})
	checktest.Operands(t, activation.ClampedSwiGLU, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestClampedDSwiGLU(t *testing.T) {
	type args = activation.ClampedDSwiGLUArgs
	good := func() args {
		return args{Grad: checktest.F32(3, 4), FwdInput: checktest.F32(3, 8), Output: checktest.F32(3, 8)}
	}
	checktest.Validation(t, activation.ClampedDSwiGLU, good, []checktest.Refusal[args]{
		{Name: "no grad", Edit: func(a *args) { a.Grad = nil }, Operand: "grad", Want: "a tensor"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(8, 3) }, Operand: "output", Want: "the shape of fwd_input, [3 8]"},
		{Name: "output over grad", Edit: func(a *args) { a.Grad = checktest.View(a.Output, 3, 4) }, Operand: "output", Want: "memory apart from grad"},
		{Name: "limit < 0", Edit: func(a *args) { a.Limit = opregistry.Float(-1) }, Operand: "limit", Want: "a number >= 0"},
		{Name: "alpha NaN", Edit: func(a *args) { a.Alpha = opregistry.Float(float32(math.NaN())) }, Operand: "alpha", Want: "a finite number"},
		{Name: "offset infinite", Edit: func(a *args) { a.GLULinearOffset = opregistry.Float(float32(math.Inf(1))) }, Operand: "glu_linear_offset", Want: "a finite number"},
	})
	checktest.Accepted(t, activation.ClampedDSwiGLU, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.FwdInput }})
	checktest.Operands(t, activation.ClampedDSwiGLU, good(), checktest.Access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
