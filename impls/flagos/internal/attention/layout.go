package attention

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// faPrepareFwd implements attention.FAPrepareFwd.
func faPrepareFwd(e *opregistry.Exec, a attention.FAPrepareFwdArgs) error {
	var v host.Views
	c := v.Copy("output", a.Output, "qkvi", a.QKVI)
	if v.Err != nil {
		return v.Err
	}
	shape, to, from := a.Output.Shape(), a.Output.Strides(), a.QKVI.Strides()
	c = c.Along(3, to[0], shape[4]*from[3]).Along(shape[1], to[1], from[1]).Along(shape[2], to[2], from[0])
	c.Along(shape[3], to[3], from[2]).Along(shape[4], to[4], from[3]).Run(e)
	return nil
}

// faPrepareBwd implements attention.FAPrepareBwd.
func faPrepareBwd(e *opregistry.Exec, a attention.FAPrepareBwdArgs) error {
	var v host.Views
	parts := [...]host.Copy{v.Copy("output", a.Output, "q", a.Q), v.Copy("output", a.Output, "k", a.K), v.Copy("output", a.Output, "v", a.V)}
	if v.Err != nil {
		return v.Err
	}
	shape, to := a.Q.Shape(), a.Output.Strides()
	for i, t := range [...]*tensor.Tensor{a.Q, a.K, a.V} {
		from := t.Strides()
		c := parts[i].At(i*shape[3]*to[3], 0).Along(shape[0], to[1], from[0]).Along(shape[1], to[0], from[1])
		c.Along(shape[2], to[2], from[2]).Along(shape[3], to[3], from[3]).Run(e)
	}
	return nil
}

// tokens is a copy of consecutive tokens between tensors whose last axes are those of a token.
type tokens struct {
	host.Copy
	e        *opregistry.Exec
	shape    []int // of a token
	to, from []int // distances in a token
}

// tokensOf returns the copy of tokens of these axes; without a source it clears tokens.
func tokensOf(v *host.Views, e *opregistry.Exec, toName string, to *tensor.Tensor, fromName string, from *tensor.Tensor) tokens {
	axes := len(to.Shape()) - 2
	c := tokens{e: e, Copy: v.Copy(toName, to, fromName, from), shape: to.Shape()[axes:], to: to.Strides()[axes:]}
	if c.from = c.to; from != nil {
		c.from = from.Strides()[len(from.Shape())-2:]
	}
	return c
}

// run copies n tokens at these distances, from the elements at to and from on.
func (c *tokens) run(n, to, toStep, from, fromStep int) {
	box := c.At(to, from).Along(n, toStep, fromStep)
	for axis, length := range c.shape {
		box = box.Along(length, c.to[axis], c.from[axis])
	}
	box.Run(c.e)
}

// convertTHDToBSHD implements attention.ConvertTHDToBSHD.
func convertTHDToBSHD(e *opregistry.Exec, a attention.ConvertTHDArgs) error {
	var v host.Views
	ends := v.Int32s("cu_seqlens", a.CuSeqlens)
	c, zero := tokensOf(&v, e, "output", a.Output, "tensor", a.Tensor), tokensOf(&v, e, "output", a.Output, "", nil)
	if v.Err != nil {
		return v.Err
	}
	rows, packed := a.Output.Strides(), a.Tensor.Strides()[0]
	for b := range len(ends) - 1 {
		first, n := int(ends[b]), int(ends[b+1]-ends[b])
		c.run(n, b*rows[0], rows[1], first*packed, packed)
		zero.run(a.Output.Shape()[1]-n, b*rows[0]+n*rows[1], rows[1], 0, 0)
	}
	return nil
}

// convertBSHDToTHD implements attention.ConvertBSHDToTHD.
func convertBSHDToTHD(e *opregistry.Exec, a attention.ConvertTHDArgs) error {
	var v host.Views
	ends := v.Int32s("cu_seqlens", a.CuSeqlens)
	c, zero := tokensOf(&v, e, "output", a.Output, "tensor", a.Tensor), tokensOf(&v, e, "output", a.Output, "", nil)
	if v.Err != nil {
		return v.Err
	}
	packed, rows := a.Output.Strides()[0], a.Tensor.Strides()
	for b := range len(ends) - 1 {
		first, n := int(ends[b]), int(ends[b+1]-ends[b])
		c.run(n, first*packed, packed, b*rows[0], rows[1])
	}
	last := int(ends[len(ends)-1])
	zero.run(a.Output.Shape()[0]-last, last*packed, packed, 0, 0)
	return nil
}
