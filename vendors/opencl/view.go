package opencl

import (
	"math"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// rowView is a tensor whose last axis is dense and whose other axes form rows of one pitch, in
// blocks at one distance. Distances are in elements.
type rowView struct {
	*tensor.Tensor
	Rows, Cols         int
	Pitch, Block, Jump int
}

// kernelCall is one call of an impl: it views operands, which may decline the call, and launches
// kernels.
type kernelCall struct {
	operandViews
	exec *opregistry.Exec
}

// begin returns the call of an impl.
func begin(e *opregistry.Exec) kernelCall { return kernelCall{exec: e} }

// rows requires rows of a dtype of Storage.
func (c *kernelCall) rows(name string, t *tensor.Tensor) rowView {
	if !c.stored(name, t) {
		return rowView{}
	}
	return c.anyRows(name, t)
}

// anyRows requires rows of any dtype.
func (c *kernelCall) anyRows(name string, t *tensor.Tensor) rowView {
	if !c.on(name, t) {
		return rowView{}
	}
	shape, strides := t.Shape(), t.Strides()
	r := rowView{Tensor: t, Rows: 1, Cols: 1, Block: 1}
	if len(shape) > 0 {
		r.Rows, r.Cols = shape.Rows(), shape.Cols()
	}
	r.Pitch = r.Cols
	if r.Rows >= math.MaxInt32 || r.Cols >= math.MaxInt32 && !t.IsContiguous() {
		c.decline("shape %v of %s, this impl serves less than 2³¹ rows and columns", shape, name)
	}
	if r.Rows == 0 || r.Cols == 0 {
		return r
	}
	r.Block, r.Jump = r.Rows, r.Rows*r.Cols
	if t.IsContiguous() {
		return r
	}
	// levels are the leading axes from the last on, as few as possible.
	var sizes, steps [3]int
	levels, last := 0, len(shape)-1
	for axis := last - 1; axis >= 0; axis-- {
		switch {
		case shape[axis] == 1:
		case levels > 0 && strides[axis] == sizes[levels-1]*steps[levels-1]:
			sizes[levels-1] *= shape[axis]
		case levels < len(sizes):
			sizes[levels], steps[levels] = shape[axis], strides[axis]
			levels++
		}
	}
	if shape[last] > 1 && strides[last] != 1 || levels > 2 {
		c.decline("strides %v of %s %v, this impl serves dense rows in blocks of one pitch", strides, name, shape)
		return r
	}
	if levels > 0 {
		r.Pitch, r.Block = steps[0], sizes[0]
	}
	if levels > 1 {
		r.Jump = steps[1]
	}
	return r
}

// numbers requires dense elements of one of these dtypes.
func (c *kernelCall) numbers(name string, t *tensor.Tensor, want ...tensor.DType) {
	if !c.on(name, t) {
		return
	}
	if !t.IsContiguous() {
		c.decline("strides %v of %s %v, this impl serves contiguous elements", t.Strides(), name, t.Shape())
	}
	for _, d := range want {
		if t.DType() == d {
			return
		}
	}
	c.decline("dtype %v of %s, this impl serves %v", t.DType(), name, want)
}

// indexFlags are the first flags of a program with indices, whose type is INDEX.
var indexFlags = []string{"INDEX=int", "INDEX=long"}

// scratch lends n floats or integers of undefined content for kernels of the call. The caller
// releases them when those kernels are queued.
func (c *kernelCall) scratch(n int) (*opencl.Scratch, error) {
	return c.Device.Scratch(c.exec.Stream(), n)
}

// index requires dense integers of i32 or i64 and returns the flag of their type.
func (c *kernelCall) index(name string, t *tensor.Tensor) macroFlags {
	c.numbers(name, t, tensor.I32, tensor.I64)
	if t.DType() == tensor.I64 {
		return 2
	}
	return 1
}
