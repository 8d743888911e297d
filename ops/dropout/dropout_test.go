package dropout_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

// everyOther returns a view of n bytes with gaps.
func everyOther(n int) *tensor.Tensor {
	v, err := checktest.Zeros(tensor.U8, 2*n).AsStrided([]int{n}, []int{2}, 0)
	if err != nil {
		panic(err)
	}
	return v
}

func TestDropoutFwd(t *testing.T) {
	type args = dropout.DropoutFwdArgs
	good := func() args {
		return args{Input: checktest.F32(3, 7), Out: checktest.F32(3, 7), Mask: checktest.Zeros(tensor.U8, 3), DropoutProbability: 0.1, Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, dropout.DropoutFwd, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "integers", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.I32, 3, 7) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "no out", Edit: func(a *args) { a.Out = nil }, Operand: "out", Want: "a tensor"},
		{Name: "dtype of out", Edit: func(a *args) { a.Out = checktest.Zeros(tensor.F16, 3, 7) }, Operand: "out", Want: "the dtype of input, f32"},
		{Name: "shape of out", Edit: func(a *args) { a.Out = checktest.F32(21) }, Operand: "out", Want: "the shape of input, [3 7]"},
		{Name: "out overlaps input", Edit: func(a *args) { a.Out = checktest.Shifted(&a.Input) }, Operand: "out", Want: "the same view as input"},
		{Name: "no mask", Edit: func(a *args) { a.Mask = nil }, Operand: "mask", Want: "a tensor"},
		{Name: "dtype of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.Bool, 3) }, Operand: "mask", Want: "dtype u8"},
		{Name: "a byte an element", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 21) }, Operand: "mask", Want: "3 elements (one bit per element)"},
		{Name: "mask too short", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 2) }, Operand: "mask", Want: "3 elements (one bit per element)"},
		{Name: "mask with gaps", Edit: func(a *args) { a.Mask = everyOther(3) }, Operand: "mask", Want: "a contiguous tensor"},
		{Name: "p < 0", Edit: func(a *args) { a.DropoutProbability = -0.1 }, Operand: "dropout_probability", Want: "a number in [0, 1)"},
		{Name: "p = 1", Edit: func(a *args) { a.DropoutProbability = 1 }, Operand: "dropout_probability", Want: "a number in [0, 1)"},
		{Name: "p NaN", Edit: func(a *args) { a.DropoutProbability = float32(math.NaN()) }, Operand: "dropout_probability", Want: "a number in [0, 1)"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, dropout.DropoutFwd, good, map[string]func(a *args){
		"in place": func(a *args) { a.Out = a.Input },
		"p = 0":    func(a *args) { a.DropoutProbability = 0 },
		"empty": func(a *args) {
			a.Input, a.Out, a.Mask = checktest.F32(0), checktest.F32(0), checktest.Zeros(tensor.U8, 0)
		},
		"scalar": func(a *args) {
			a.Input, a.Out, a.Mask = checktest.F32(), checktest.F32(), checktest.Zeros(tensor.U8, 1)
		},
	})
	checktest.Operands(t, dropout.DropoutFwd, good(), checktest.Access{"input": opregistry.AccessRead, "out": opregistry.AccessWrite, "mask": opregistry.AccessWrite})
}

func TestDropoutMaskOverlaps(t *testing.T) {
	type args = dropout.DropoutFwdArgs
	// Bytes and floats in one storage.
	memory := make([]int32, 30)
	at := func(first, n int, d tensor.DType, shape ...int) *tensor.Tensor {
		x, err := tensor.FromBytes(checktest.BytesOf(memory)[first:first+n], d, shape...)
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
	checktest.Validation(t, dropout.DropoutFwd, good, []checktest.Refusal[args]{
		{Name: "mask over input", Edit: func(a *args) { a.Mask = at(5, 1, tensor.U8, 1) }, Operand: "mask", Want: "memory apart from input"},
		{Name: "mask over out", Edit: func(a *args) { a.Mask = at(40, 1, tensor.U8, 1) }, Operand: "mask", Want: "memory apart from out"},
	})
	type back = dropout.DropoutBwdArgs
	checktest.Validation(t, dropout.DropoutBwd, func() back {
		a := good()
		return back{GradOutput: a.Input, Mask: a.Mask, GradInput: a.Out, Saved: a.Saved}
	}, []checktest.Refusal[back]{
		{Name: "grad_input over mask", Edit: func(a *back) { a.Mask = at(40, 1, tensor.U8, 1) }, Operand: "grad_input", Want: "memory apart from mask"},
	})
}

func TestDropoutBwd(t *testing.T) {
	type args = dropout.DropoutBwdArgs
	good := func() args {
		return args{GradOutput: checktest.F32(3, 7), Mask: checktest.Zeros(tensor.U8, 3), GradInput: checktest.F32(3, 7), DropoutProbability: 0.1, Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, dropout.DropoutBwd, good, []checktest.Refusal[args]{
		{Name: "no grad_output", Edit: func(a *args) { a.GradOutput = nil }, Operand: "grad_output", Want: "a tensor"},
		{Name: "no mask", Edit: func(a *args) { a.Mask = nil }, Operand: "mask", Want: "a tensor"},
		{Name: "a byte an element", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 21) }, Operand: "mask", Want: "3 elements (one bit per element)"},
		{Name: "no grad_input", Edit: func(a *args) { a.GradInput = nil }, Operand: "grad_input", Want: "a tensor"},
		{Name: "shape of grad_input", Edit: func(a *args) { a.GradInput = checktest.F32(7, 3) }, Operand: "grad_input", Want: "the shape of grad_output, [3 7]"},
		{Name: "grad_input overlaps grad_output", Edit: func(a *args) { a.GradInput = checktest.Shifted(&a.GradOutput) }, Operand: "grad_input", Want: "the same view as grad_output"},
		{Name: "p = 1", Edit: func(a *args) { a.DropoutProbability = 1 }, Operand: "dropout_probability", Want: "a number in [0, 1)"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, dropout.DropoutBwd, good, map[string]func(a *args){"in place": func(a *args) { a.GradInput = a.GradOutput }})
	checktest.Operands(t, dropout.DropoutBwd, good(), checktest.Access{"grad_output": opregistry.AccessRead, "mask": opregistry.AccessRead, "grad_input": opregistry.AccessWrite})
}
