package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// scores returns a good shape for an op by its number of axes.
func scores(op opregistry.Handle) []int {
	if op == ops.ScaledUpperTriangMaskedSoftmaxForward || op == ops.ScaledUpperTriangMaskedSoftmaxBackward {
		return []int{6, 4, 4}
	}
	return []int{2, 3, 4, 5}
}

func TestSoftmaxForward(t *testing.T) {
	type args = ops.SoftmaxArgs
	for _, op := range []*opregistry.Op[args]{
		ops.ScaledSoftmaxForward, ops.ScaledUpperTriangMaskedSoftmaxForward, ops.ScaledAlignedCausalMaskedSoftmaxForward,
	} {
		t.Run(op.Name(), func(t *testing.T) {
			shape := scores(op)
			good := func() args { return args{Input: f32(shape...), Output: f32(shape...), ScaleFactor: 0.5} }
			testValidation(t, op, good, []refusal[args]{
				{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
				{"integers", func(a *args) { a.Input = of(tensor.I32, shape...) }, "input", "dtype f32, bf16, f16 or f64"},
				{"axes", func(a *args) { a.Input, a.Output = f32(4, 4), f32(4, 4) }, "input", "axes"},
				{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
				{"dtype of output", func(a *args) { a.Output = of(tensor.F64, shape...) }, "output", "the dtype of input, f32"},
				{"shape of output", func(a *args) { a.Output = f32(3, 2) }, "output", "the shape of input"},
				{"output overlaps input", func(a *args) { a.Output = shifted(&a.Input) }, "output", "the same view as input"},
				{"scale NaN", func(a *args) { a.ScaleFactor = float32(math.NaN()) }, "scale_factor", "a finite number"},
				{"scale infinite", func(a *args) { a.ScaleFactor = float32(math.Inf(-1)) }, "scale_factor", "a finite number"},
			})
			testAccepted(t, op, good, map[string]func(a *args){
				"in place":       func(a *args) { a.Output = a.Input },
				"scale 0":        func(a *args) { a.ScaleFactor = 0 },
				"negative scale": func(a *args) { a.ScaleFactor = -1 },
			})
			testOperands(t, op, good(), access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
	good := func() args { return args{Input: f32(6, 4, 4), Output: f32(6, 4, 4)} }
	testValidation(t, ops.ScaledUpperTriangMaskedSoftmaxForward, good, []refusal[args]{
		{"not square", func(a *args) { a.Input, a.Output = f32(6, 4, 5), f32(6, 4, 5) }, "input", "square matrices"},
	})
}

func TestSoftmaxBackward(t *testing.T) {
	type args = ops.SoftmaxBackwardArgs
	for _, op := range []*opregistry.Op[args]{
		ops.ScaledSoftmaxBackward, ops.ScaledMaskedSoftmaxBackward, ops.ScaledUpperTriangMaskedSoftmaxBackward,
		ops.ScaledAlignedCausalMaskedSoftmaxBackward,
	} {
		t.Run(op.Name(), func(t *testing.T) {
			shape := scores(op)
			good := func() args {
				return args{OutputGrads: f32(shape...), SoftmaxResults: f32(shape...), Output: f32(shape...), ScaleFactor: 0.5}
			}
			testValidation(t, op, good, []refusal[args]{
				{"no output_grads", func(a *args) { a.OutputGrads = nil }, "output_grads", "a tensor"},
				{"axes", func(a *args) { a.OutputGrads = f32(4, 4) }, "output_grads", "axes"},
				{"no softmax_results", func(a *args) { a.SoftmaxResults = nil }, "softmax_results", "a tensor"},
				{"dtype of softmax_results", func(a *args) { a.SoftmaxResults = of(tensor.BF16, shape...) }, "softmax_results", "the dtype of output_grads, f32"},
				{"shape of softmax_results", func(a *args) { a.SoftmaxResults = f32(3, 2) }, "softmax_results", "the shape of output_grads"},
				{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
				{"shape of output", func(a *args) { a.Output = f32(3, 2) }, "output", "the shape of output_grads"},
				{"output overlaps output_grads", func(a *args) { a.Output = shifted(&a.OutputGrads) }, "output", "the same view as output_grads"},
				{"output is softmax_results", func(a *args) { a.Output = a.SoftmaxResults }, "output", "memory apart from softmax_results"},
				{"scale NaN", func(a *args) { a.ScaleFactor = float32(math.NaN()) }, "scale_factor", "a finite number"},
			})
			testAccepted(t, op, good, map[string]func(a *args){"into output_grads": func(a *args) { a.Output = a.OutputGrads }})
			testOperands(t, op, good(), access{"output_grads": opregistry.AccessRead, "softmax_results": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestScaledMaskedSoftmaxForward(t *testing.T) {
	type args = ops.ScaledMaskedSoftmaxForwardArgs
	good := func() args {
		return args{Input: f32(2, 3, 4, 5), Mask: of(tensor.U8, 2, 1, 4, 5), Output: f32(2, 3, 4, 5), ScaleFactor: 0.5}
	}
	const want = "[2 or 1, 1, 4, 5]"
	testValidation(t, ops.ScaledMaskedSoftmaxForward, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"axes of input", func(a *args) { a.Input = f32(6, 4, 5) }, "input", "4 axes"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"output overlaps input", func(a *args) { a.Output = shifted(&a.Input) }, "output", "the same view as input"},
		{"scale infinite", func(a *args) { a.ScaleFactor = float32(math.Inf(1)) }, "scale_factor", "a finite number"},
		{"no mask", func(a *args) { a.Mask = nil }, "mask", "a tensor"},
		{"dtype of mask", func(a *args) { a.Mask = of(tensor.I32, 2, 1, 4, 5) }, "mask", "dtype u8, bool, f32, bf16, f16 or f64"},
		{"axes of mask", func(a *args) { a.Mask = of(tensor.U8, 4, 5) }, "mask", "4 axes"},
		{"batches of mask", func(a *args) { a.Mask = of(tensor.U8, 3, 1, 4, 5) }, "mask", want},
		{"heads of mask", func(a *args) { a.Mask = of(tensor.U8, 2, 3, 4, 5) }, "mask", want},
		{"queries of mask", func(a *args) { a.Mask = of(tensor.U8, 2, 1, 1, 5) }, "mask", want},
		{"keys of mask", func(a *args) { a.Mask = of(tensor.U8, 2, 1, 4, 1) }, "mask", want},
		{"output over mask", func(a *args) { a.Mask = view(a.Output, 1, 1, 4, 5) }, "output", "memory apart from mask"},
	})
	testAccepted(t, ops.ScaledMaskedSoftmaxForward, good, map[string]func(a *args){
		"in place":    func(a *args) { a.Output = a.Input },
		"one for all": func(a *args) { a.Mask = of(tensor.Bool, 1, 1, 4, 5) },
		"added":       func(a *args) { a.Mask = of(tensor.BF16, 2, 1, 4, 5) },
	})
	testOperands(t, ops.ScaledMaskedSoftmaxForward, good(), access{"input": opregistry.AccessRead, "mask": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
