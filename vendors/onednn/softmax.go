package onednn

import (
	"runtime"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// softmaxGradient computes softmax.ScaledSoftmaxBackward and softmax.ScaledMaskedSoftmaxBackward
// for contiguous operands in CPU memory, all f32 or all bf16, and a factor of 1: oneDNN's primitive
// has no factor, and a second pass would cost more than oneDNN gains and round once more. Sums are
// f32. It allocates nothing in a steady state.
func (h *handle) softmaxGradient(_ *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
	if err := served([]named{{"output_grads", a.OutputGrads}, {"softmax_results", a.SoftmaxResults}, {"output", a.Output}}, nil); err != nil {
		return err
	}
	if a.ScaleFactor != 1 {
		return opregistry.Unsupported("given scale_factor %v, want 1", a.ScaleFactor)
	}
	rows, cols := a.Output.Shape().Rows(), a.Output.Shape().Cols()
	if rows == 0 || cols == 0 {
		return nil
	}
	annotate([]*tensor.Tensor{a.OutputGrads, a.SoftmaxResults}, []*tensor.Tensor{a.Output})
	err := h.execute(spec{kind: softmaxBackward, dtype: a.Output.DType(), rows: rows, cols: cols},
		a.OutputGrads.Pointer(), a.Output.Pointer(), a.SoftmaxResults.Pointer())
	runtime.KeepAlive(a)
	return err
}
