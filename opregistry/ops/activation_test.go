package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestSwiGLU(t *testing.T) {
	type args = ops.SwiGLUArgs
	good := func() args { return args{Input: f32(2, 3, 8), Output: f32(2, 3, 4)} }
	testValidation(t, ops.SwiGLU, good, []refusal[args]{
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
	testAccepted(t, ops.SwiGLU, good, map[string]func(a *args){
		"empty":  func(a *args) { a.Input, a.Output = f32(3, 0), f32(3, 0) },
		"vector": func(a *args) { a.Input, a.Output = f32(6), f32(3) },
	})
	testOperands(t, ops.SwiGLU, good(), access{"input": opregistry.Read, "output": opregistry.Write})
}

func TestDSwiGLU(t *testing.T) {
	type args = ops.DSwiGLUArgs
	good := func() args { return args{Grad: f32(3, 4), FwdInput: f32(3, 8), Output: f32(3, 8)} }
	testValidation(t, ops.DSwiGLU, good, []refusal[args]{
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
	testAccepted(t, ops.DSwiGLU, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.FwdInput }})
	testOperands(t, ops.DSwiGLU, good(), access{"grad": opregistry.Read, "fwd_input": opregistry.Read, "output": opregistry.Write})
}

func TestResidualAdd(t *testing.T) {
	type args = ops.ResidualAddArgs
	good := func() args { return args{A: f32(3, 4), B: f32(3, 4), Output: f32(3, 4)} }
	testValidation(t, ops.ResidualAdd, good, []refusal[args]{
		{"no a", func(a *args) { a.A = nil }, "a", "a tensor"},
		{"no b", func(a *args) { a.B = nil }, "b", "a tensor"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"integers", func(a *args) { a.A = of(tensor.I64, 3, 4) }, "a", "dtype f32, bf16, f16 or f64"},
		{"dtype of b", func(a *args) { a.B = of(tensor.F16, 3, 4) }, "b", "the dtype of a, f32"},
		{"shape of b", func(a *args) { a.B = f32(4, 3) }, "b", "the shape of a, [3 4]"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.F64, 3, 4) }, "output", "the dtype of a, f32"},
		{"shape of output", func(a *args) { a.Output = f32(12) }, "output", "the shape of a, [3 4]"},
		{"output overlaps a", func(a *args) { a.Output = shifted(&a.A) }, "output", "the same view as a"},
		{"output overlaps b", func(a *args) { a.Output = shifted(&a.B) }, "output", "the same view as b"},
	})
	testAccepted(t, ops.ResidualAdd, good, map[string]func(a *args){
		"into a":     func(a *args) { a.Output = a.A },
		"into b":     func(a *args) { a.Output = a.B },
		"all one":    func(a *args) { a.B, a.Output = a.A, a.A },
		"no element": func(a *args) { *a = args{A: f32(0), B: f32(0), Output: f32(0)} },
		"scalars":    func(a *args) { *a = args{A: f32(), B: f32(), Output: f32()} },
	})
	testOperands(t, ops.ResidualAdd, good(), access{"a": opregistry.Read, "b": opregistry.Read, "output": opregistry.Write})
}
