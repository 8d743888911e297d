package softmax_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// scores returns a good shape for an op by its number of axes.
func scores(op opregistry.Handle) []int {
	if op == softmax.ScaledUpperTriangMaskedSoftmaxForward || op == softmax.ScaledUpperTriangMaskedSoftmaxBackward {
		return []int{6, 4, 4}
	}
	return []int{2, 3, 4, 5}
}

func TestSoftmaxForward(t *testing.T) {
	type args = softmax.SoftmaxArgs
	for _, op := range []*opregistry.Op[args]{
		softmax.ScaledSoftmaxForward, softmax.ScaledUpperTriangMaskedSoftmaxForward, softmax.ScaledAlignedCausalMaskedSoftmaxForward,
	} {
		t.Run(op.Name(), func(t *testing.T) {
			shape := scores(op)
			good := func() args {
				return args{Input: checktest.F32(shape...), Output: checktest.F32(shape...), ScaleFactor: 0.5}
			}
			checktest.Validation(t, op, good, []checktest.Refusal[args]{
				{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
				{Name: "integers", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.I32, shape...) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
				{Name: "axes", Edit: func(a *args) { a.Input, a.Output = checktest.F32(4, 4), checktest.F32(4, 4) }, Operand: "input", Want: "shape [b "},
				{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
				{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F64, shape...) }, Operand: "output", Want: "the dtype of input, f32"},
				{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(3, 2) }, Operand: "output", Want: "the shape of input"},
				{Name: "output overlaps input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input"},
				{Name: "scale NaN", Edit: func(a *args) { a.ScaleFactor = float32(math.NaN()) }, Operand: "scale_factor", Want: "a finite number"},
				{Name: "scale infinite", Edit: func(a *args) { a.ScaleFactor = float32(math.Inf(-1)) }, Operand: "scale_factor", Want: "a finite number"},
			})
			checktest.Accepted(t, op, good, map[string]func(a *args){
				"in place":       func(a *args) { a.Output = a.Input },
				"scale 0":        func(a *args) { a.ScaleFactor = 0 },
				"negative scale": func(a *args) { a.ScaleFactor = -1 },
			})
			checktest.Operands(t, op, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
	good := func() args { return args{Input: checktest.F32(6, 4, 4), Output: checktest.F32(6, 4, 4)} }
	checktest.Validation(t, softmax.ScaledUpperTriangMaskedSoftmaxForward, good, []checktest.Refusal[args]{
		{Name: "not square", Edit: func(a *args) { a.Input, a.Output = checktest.F32(6, 4, 5), checktest.F32(6, 4, 5) }, Operand: "input", Want: "shape [6 4 4], as [b s s]"},
	})
}

func TestSoftmaxBackward(t *testing.T) {
	type args = softmax.SoftmaxBackwardArgs
	for _, op := range []*opregistry.Op[args]{
		softmax.ScaledSoftmaxBackward, softmax.ScaledMaskedSoftmaxBackward, softmax.ScaledUpperTriangMaskedSoftmaxBackward,
		softmax.ScaledAlignedCausalMaskedSoftmaxBackward,
	} {
		t.Run(op.Name(), func(t *testing.T) {
			shape := scores(op)
			good := func() args {
				return args{OutputGrads: checktest.F32(shape...), SoftmaxResults: checktest.F32(shape...), Output: checktest.F32(shape...), ScaleFactor: 0.5}
			}
			checktest.Validation(t, op, good, []checktest.Refusal[args]{
				{Name: "no output_grads", Edit: func(a *args) { a.OutputGrads = nil }, Operand: "output_grads", Want: "a tensor"},
				{Name: "axes", Edit: func(a *args) { a.OutputGrads = checktest.F32(4, 4) }, Operand: "output_grads", Want: "shape [b "},
				{Name: "no softmax_results", Edit: func(a *args) { a.SoftmaxResults = nil }, Operand: "softmax_results", Want: "a tensor"},
				{Name: "dtype of softmax_results", Edit: func(a *args) { a.SoftmaxResults = checktest.Zeros(tensor.BF16, shape...) }, Operand: "softmax_results", Want: "the dtype of output_grads, f32"},
				{Name: "shape of softmax_results", Edit: func(a *args) { a.SoftmaxResults = checktest.F32(3, 2) }, Operand: "softmax_results", Want: "the shape of output_grads"},
				{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
				{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(3, 2) }, Operand: "output", Want: "the shape of output_grads"},
				{Name: "output overlaps output_grads", Edit: func(a *args) { a.Output = checktest.Shifted(&a.OutputGrads) }, Operand: "output", Want: "the same view as output_grads"},
				{Name: "output is softmax_results", Edit: func(a *args) { a.Output = a.SoftmaxResults }, Operand: "output", Want: "memory apart from softmax_results"},
				{Name: "scale NaN", Edit: func(a *args) { a.ScaleFactor = float32(math.NaN()) }, Operand: "scale_factor", Want: "a finite number"},
			})
			checktest.Accepted(t, op, good, map[string]func(a *args){"into output_grads": func(a *args) { a.Output = a.OutputGrads }})
			checktest.Operands(t, op, good(), checktest.Access{"output_grads": opregistry.AccessRead, "softmax_results": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestScaledMaskedSoftmaxForward(t *testing.T) {
	type args = softmax.ScaledMaskedSoftmaxForwardArgs
	good := func() args {
		return args{Input: checktest.F32(2, 3, 4, 5), Mask: checktest.Zeros(tensor.U8, 2, 1, 4, 5), Output: checktest.F32(2, 3, 4, 5), ScaleFactor: 0.5}
	}
	const want = "shape [_ 1 4 5], as [_ 1 sq sk]"
	checktest.Validation(t, softmax.ScaledMaskedSoftmaxForward, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "axes of input", Edit: func(a *args) { a.Input = checktest.F32(6, 4, 5) }, Operand: "input", Want: "shape [b h sq sk]"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "output overlaps input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input"},
		{Name: "scale infinite", Edit: func(a *args) { a.ScaleFactor = float32(math.Inf(1)) }, Operand: "scale_factor", Want: "a finite number"},
		{Name: "no mask", Edit: func(a *args) { a.Mask = nil }, Operand: "mask", Want: "a tensor"},
		{Name: "dtype of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.I32, 2, 1, 4, 5) }, Operand: "mask", Want: "dtype f32, bf16, f16, f64, u8 or bool"},
		{Name: "axes of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 4, 5) }, Operand: "mask", Want: want},
		{Name: "batches of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 3, 1, 4, 5) }, Operand: "mask", Want: "[2 or 1, 1, 4, 5]"},
		{Name: "heads of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 2, 3, 4, 5) }, Operand: "mask", Want: want},
		{Name: "queries of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 2, 1, 1, 5) }, Operand: "mask", Want: want},
		{Name: "keys of mask", Edit: func(a *args) { a.Mask = checktest.Zeros(tensor.U8, 2, 1, 4, 1) }, Operand: "mask", Want: want},
		{Name: "output over mask", Edit: func(a *args) { a.Mask = checktest.View(a.Output, 1, 1, 4, 5) }, Operand: "output", Want: "memory apart from mask"},
	})
	checktest.Accepted(t, softmax.ScaledMaskedSoftmaxForward, good, map[string]func(a *args){
		"in place":    func(a *args) { a.Output = a.Input },
		"one for all": func(a *args) { a.Mask = checktest.Zeros(tensor.Bool, 1, 1, 4, 5) },
		"added":       func(a *args) { a.Mask = checktest.Zeros(tensor.BF16, 2, 1, 4, 5) },
	})
	checktest.Operands(t, softmax.ScaledMaskedSoftmaxForward, good(), checktest.Access{"input": opregistry.AccessRead, "mask": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
