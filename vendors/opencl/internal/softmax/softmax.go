package softmax

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/internal/rows"
)

//go:embed softmax.cl
var source string

var program = rows.NewProgram("softmax", source, []string{"X", "K"}, []string{"CAUSAL", "REPLACE", "ADDED"})

const (
	causal rows.Flags = 1 << iota
	replacing
	added
)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		forward(softmax.ScaledSoftmaxForward, 0), backward(softmax.ScaledSoftmaxBackward, 0),
		forward(softmax.ScaledUpperTriangMaskedSoftmaxForward, causal), backward(softmax.ScaledUpperTriangMaskedSoftmaxBackward, causal),
		forward(softmax.ScaledAlignedCausalMaskedSoftmaxForward, causal), backward(softmax.ScaledAlignedCausalMaskedSoftmaxBackward, causal),
		kernel.Impl(softmax.ScaledMaskedSoftmaxForward, masked, kernel.Storage), backward(softmax.ScaledMaskedSoftmaxBackward, 0),
	}
}

// queries returns the length of the axis before the last one.
func queries(t *tensor.Tensor) int { return t.Shape()[len(t.Shape())-2] }

func forward(op *opregistry.Op[softmax.SoftmaxArgs], flags rows.Flags) opregistry.Impl {
	return kernel.Impl(op, func(e *opregistry.Exec, a softmax.SoftmaxArgs) error {
		c := rows.Begin(e)
		x, y := c.Rows("input", a.Input), c.Rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.Kernel(program, "softmax_fwd", rows.Types{a.Input.DType()}, flags).Mat(x, y)
		return l.Rows(x.Rows, x.Cols).F32(a.ScaleFactor).U32(queries(a.Input), 1, 1).Run()
	}, kernel.Storage)
}

// masked implements softmax.ScaledMaskedSoftmaxForward.
func masked(e *opregistry.Exec, a softmax.ScaledMaskedSoftmaxForwardArgs) error {
	c := rows.Begin(e)
	x, y, flags, types := c.Rows("input", a.Input), c.Rows("output", a.Output), replacing, rows.Types{a.Input.DType()}
	mask := c.AnyRows("mask", a.Mask)
	if d := a.Mask.DType(); d != tensor.U8 && d != tensor.Bool {
		mask, flags = c.Rows("mask", a.Mask), added
		types[1] = d
	}
	if c.Err != nil || x.Rows == 0 {
		return c.Err
	}
	l := c.Kernel(program, "softmax_fwd", types, flags).Mat(x, y, mask)
	return l.Rows(x.Rows, x.Cols).F32(a.ScaleFactor).U32(queries(a.Input), a.Input.Shape()[1], a.Mask.Shape()[0]).Run()
}

func backward(op *opregistry.Op[softmax.SoftmaxBackwardArgs], flags rows.Flags) opregistry.Impl {
	return kernel.Impl(op, func(e *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
		c := rows.Begin(e)
		dy, y, dx := c.Rows("output_grads", a.OutputGrads), c.Rows("softmax_results", a.SoftmaxResults), c.Rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.Kernel(program, "softmax_bwd", rows.Types{a.OutputGrads.DType()}, flags).Mat(dy, y, dx)
		return l.Rows(dy.Rows, dy.Cols).F32(a.ScaleFactor).U32(queries(a.OutputGrads)).Run()
	}, kernel.Storage)
}
