package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

//go:embed softmax.cl
var softmaxSource string

var softmaxProgram = newProgram("softmax", softmaxSource, []string{"X", "K"}, []string{"CAUSAL", "REPLACE", "ADDED"})

const (
	causal macroFlags = 1 << iota
	replacing
	added
)

// softmaxImpls returns the impls of the family.
func softmaxImpls() []opregistry.Impl {
	return []opregistry.Impl{
		softmaxForward(softmax.ScaledSoftmaxForward, 0), softmaxBackward(softmax.ScaledSoftmaxBackward, 0),
		softmaxForward(softmax.ScaledUpperTriangMaskedSoftmaxForward, causal), softmaxBackward(softmax.ScaledUpperTriangMaskedSoftmaxBackward, causal),
		softmaxForward(softmax.ScaledAlignedCausalMaskedSoftmaxForward, causal), softmaxBackward(softmax.ScaledAlignedCausalMaskedSoftmaxBackward, causal),
		openclImpl(softmax.ScaledMaskedSoftmaxForward, masked, Storage), softmaxBackward(softmax.ScaledMaskedSoftmaxBackward, 0),
	}
}

// queries returns the length of the axis before the last one.
func queries(t *tensor.Tensor) int { return t.Shape()[len(t.Shape())-2] }

func softmaxForward(op *opregistry.Op[softmax.SoftmaxArgs], flags macroFlags) opregistry.Impl {
	return openclImpl(op, func(e *opregistry.Exec, a softmax.SoftmaxArgs) error {
		c := begin(e)
		x, y := c.rows("input", a.Input), c.rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.kernel(softmaxProgram, "softmax_fwd", typeList{a.Input.DType()}, flags).mat(x, y)
		return l.groupRows(x.Rows, x.Cols).f32(a.ScaleFactor).u32(queries(a.Input), 1, 1).Run()
	}, Storage)
}

// masked implements softmax.ScaledMaskedSoftmaxForward.
func masked(e *opregistry.Exec, a softmax.ScaledMaskedSoftmaxForwardArgs) error {
	c := begin(e)
	x, y, flags, types := c.rows("input", a.Input), c.rows("output", a.Output), replacing, typeList{a.Input.DType()}
	mask := c.anyRows("mask", a.Mask)
	if d := a.Mask.DType(); d != tensor.U8 && d != tensor.Bool {
		mask, flags = c.rows("mask", a.Mask), added
		types[1] = d
	}
	if c.Err != nil || x.Rows == 0 {
		return c.Err
	}
	l := c.kernel(softmaxProgram, "softmax_fwd", types, flags).mat(x, y, mask)
	return l.groupRows(x.Rows, x.Cols).f32(a.ScaleFactor).u32(queries(a.Input), a.Input.Shape()[1], a.Mask.Shape()[0]).Run()
}

func softmaxBackward(op *opregistry.Op[softmax.SoftmaxBackwardArgs], flags macroFlags) opregistry.Impl {
	return openclImpl(op, func(e *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
		c := begin(e)
		dy, y, dx := c.rows("output_grads", a.OutputGrads), c.rows("softmax_results", a.SoftmaxResults), c.rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		l := c.kernel(softmaxProgram, "softmax_bwd", typeList{a.OutputGrads.DType()}, flags).mat(dy, y, dx)
		return l.groupRows(dy.Rows, dy.Cols).f32(a.ScaleFactor).u32(queries(a.OutputGrads)).Run()
	}, Storage)
}
