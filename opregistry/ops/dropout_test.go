package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// everyOther returns a view of n bytes with gaps.
func everyOther(n int) *tensor.Tensor {
	v, err := of(tensor.U8, 2*n).AsStrided([]int{n}, []int{2}, 0)
	if err != nil {
		panic(err)
	}
	return v
}

func TestDropoutFwd(t *testing.T) {
	type args = ops.DropoutFwdArgs
	good := func() args {
		return args{Input: f32(3, 7), Out: f32(3, 7), Mask: of(tensor.U8, 3), DropoutProbability: 0.1, Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.DropoutFwd, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"integers", func(a *args) { a.Input = of(tensor.I32, 3, 7) }, "input", "dtype f32, bf16, f16 or f64"},
		{"no out", func(a *args) { a.Out = nil }, "out", "a tensor"},
		{"dtype of out", func(a *args) { a.Out = of(tensor.F16, 3, 7) }, "out", "the dtype of input, f32"},
		{"shape of out", func(a *args) { a.Out = f32(21) }, "out", "the shape of input, [3 7]"},
		{"out overlaps input", func(a *args) { a.Out = shifted(&a.Input) }, "out", "the same view as input"},
		{"no mask", func(a *args) { a.Mask = nil }, "mask", "a tensor"},
		{"dtype of mask", func(a *args) { a.Mask = of(tensor.Bool, 3) }, "mask", "dtype u8"},
		{"a byte an element", func(a *args) { a.Mask = of(tensor.U8, 21) }, "mask", "3 elements (a bit an element)"},
		{"mask too short", func(a *args) { a.Mask = of(tensor.U8, 2) }, "mask", "3 elements (a bit an element)"},
		{"mask with gaps", func(a *args) { a.Mask = everyOther(3) }, "mask", "a contiguous tensor"},
		{"p < 0", func(a *args) { a.DropoutProbability = -0.1 }, "dropout_probability", "a number in [0, 1)"},
		{"p = 1", func(a *args) { a.DropoutProbability = 1 }, "dropout_probability", "a number in [0, 1)"},
		{"p NaN", func(a *args) { a.DropoutProbability = float32(math.NaN()) }, "dropout_probability", "a number in [0, 1)"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.DropoutFwd, good, map[string]func(a *args){
		"in place": func(a *args) { a.Out = a.Input },
		"p = 0":    func(a *args) { a.DropoutProbability = 0 },
		"empty":    func(a *args) { a.Input, a.Out, a.Mask = f32(0), f32(0), of(tensor.U8, 0) },
		"scalar":   func(a *args) { a.Input, a.Out, a.Mask = f32(), f32(), of(tensor.U8, 1) },
	})
	testOperands(t, ops.DropoutFwd, good(), access{"input": opregistry.AccessRead, "out": opregistry.AccessWrite, "mask": opregistry.AccessWrite})
}

func TestDropoutMaskOverlaps(t *testing.T) {
	type args = ops.DropoutFwdArgs
	// Bytes and floats in one storage.
	memory := make([]int32, 30)
	at := func(first, n int, d tensor.DType, shape ...int) *tensor.Tensor {
		x, err := tensor.FromBytes(bytesOf(memory)[first:first+n], d, shape...)
		if err != nil {
			panic(err)
		}
		return x
	}
	good := func() args {
		return args{
			Input: at(0, 32, tensor.F32, 8), Out: at(32, 32, tensor.F32, 8), Mask: at(64, 1, tensor.U8, 1),
			Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.DropoutFwd, good, []refusal[args]{
		{"mask over input", func(a *args) { a.Mask = at(5, 1, tensor.U8, 1) }, "mask", "memory apart from input"},
		{"mask over out", func(a *args) { a.Mask = at(40, 1, tensor.U8, 1) }, "mask", "memory apart from out"},
	})
	type back = ops.DropoutBwdArgs
	testValidation(t, ops.DropoutBwd, func() back {
		a := good()
		return back{GradOutput: a.Input, Mask: a.Mask, GradInput: a.Out, Saved: a.Saved}
	}, []refusal[back]{
		{"grad_input over mask", func(a *back) { a.Mask = at(40, 1, tensor.U8, 1) }, "grad_input", "memory apart from mask"},
	})
}

func TestDropoutBwd(t *testing.T) {
	type args = ops.DropoutBwdArgs
	good := func() args {
		return args{GradOutput: f32(3, 7), Mask: of(tensor.U8, 3), GradInput: f32(3, 7), DropoutProbability: 0.1, Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.DropoutBwd, good, []refusal[args]{
		{"no grad_output", func(a *args) { a.GradOutput = nil }, "grad_output", "a tensor"},
		{"no mask", func(a *args) { a.Mask = nil }, "mask", "a tensor"},
		{"a byte an element", func(a *args) { a.Mask = of(tensor.U8, 21) }, "mask", "3 elements (a bit an element)"},
		{"no grad_input", func(a *args) { a.GradInput = nil }, "grad_input", "a tensor"},
		{"shape of grad_input", func(a *args) { a.GradInput = f32(7, 3) }, "grad_input", "the shape of grad_output, [3 7]"},
		{"grad_input overlaps grad_output", func(a *args) { a.GradInput = shifted(&a.GradOutput) }, "grad_input", "the same view as grad_output"},
		{"p = 1", func(a *args) { a.DropoutProbability = 1 }, "dropout_probability", "a number in [0, 1)"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.DropoutBwd, good, map[string]func(a *args){"in place": func(a *args) { a.GradInput = a.GradOutput }})
	testOperands(t, ops.DropoutBwd, good(), access{"grad_output": opregistry.AccessRead, "mask": opregistry.AccessRead, "grad_input": opregistry.AccessWrite})
}
