package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

//go:embed softmax.cl
var softmaxSource string

var softmaxProgram = NewProgram("softmax", softmaxSource, []string{"X", "K"}, []string{"CAUSAL", "REPLACE", "ADDED"})

const (
	causal Flags = 1 << iota
	replacing
	added
)

// softmaxImpls returns the impls of the family.
func softmaxImpls() []opregistry.Impl {
	return []opregistry.Impl{
		softmaxForward(softmax.ScaledSoftmaxForward, 0), softmaxBackward(softmax.ScaledSoftmaxBackward, 0),
		softmaxForward(softmax.ScaledUpperTriangMaskedSoftmaxForward, causal), softmaxBackward(softmax.ScaledUpperTriangMaskedSoftmaxBackward, causal),
		softmaxForward(softmax.ScaledAlignedCausalMaskedSoftmaxForward, causal), softmaxBackward(softmax.ScaledAlignedCausalMaskedSoftmaxBackward, causal),
		Impl(softmax.ScaledMaskedSoftmaxForward, masked, Storage), softmaxBackward(softmax.ScaledMaskedSoftmaxBackward, 0),
	}
}

// queries returns the length of the axis before the last one.
func queries(t *tensor.Tensor) int { return t.Shape()[len(t.Shape())-2] }

func softmaxForward(op *opregistry.Op[softmax.SoftmaxArgs], flags Flags) opregistry.Impl {
	return Impl(op, func(e *opregistry.Exec, a softmax.SoftmaxArgs) error {
		c := Begin(e)
		x, y := c.Rows("input", a.Input), c.Rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.Kernel(softmaxProgram, "softmax_fwd", Types{a.Input.DType()}, flags).Mat(x, y)
		return l.Rows(x.Rows, x.Cols).F32(a.ScaleFactor).U32(queries(a.Input), 1, 1).Run()
	}, Storage)
}

// masked implements softmax.ScaledMaskedSoftmaxForward.
func masked(e *opregistry.Exec, a softmax.ScaledMaskedSoftmaxForwardArgs) error {
	c := Begin(e)
	x, y, flags, types := c.Rows("input", a.Input), c.Rows("output", a.Output), replacing, Types{a.Input.DType()}
	mask := c.AnyRows("mask", a.Mask)
	if d := a.Mask.DType(); d != tensor.U8 && d != tensor.Bool {
		mask, flags = c.Rows("mask", a.Mask), added
		types[1] = d
	}
	if c.Err != nil || x.Rows == 0 {
		return c.Err
	}
	l := c.Kernel(softmaxProgram, "softmax_fwd", types, flags).Mat(x, y, mask)
	return l.Rows(x.Rows, x.Cols).F32(a.ScaleFactor).U32(queries(a.Input), a.Input.Shape()[1], a.Mask.Shape()[0]).Run()
}

func softmaxBackward(op *opregistry.Op[softmax.SoftmaxBackwardArgs], flags Flags) opregistry.Impl {
	return Impl(op, func(e *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
		c := Begin(e)
		dy, y, dx := c.Rows("output_grads", a.OutputGrads), c.Rows("softmax_results", a.SoftmaxResults), c.Rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.Kernel(softmaxProgram, "softmax_bwd", Types{a.OutputGrads.DType()}, flags).Mat(dy, y, dx)
		return l.Rows(dy.Rows, dy.Cols).F32(a.ScaleFactor).U32(queries(a.OutputGrads)).Run()
	}, Storage)
}
