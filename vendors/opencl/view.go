package opencl

import (
	"math"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Rows is a tensor whose last axis is dense and whose other axes form rows of one pitch, in blocks
// at one distance. Distances are in elements.
type Rows struct {
	*tensor.Tensor
	Rows, Cols         int
	Pitch, Block, Jump int
}

// Call is one call of an impl: it views operands, which may decline the call, and launches kernels.
type Call struct {
	Views
	exec *opregistry.Exec
}

// Begin returns the call of an impl.
func Begin(e *opregistry.Exec) Call { return Call{exec: e} }

// Rows requires rows of a dtype of kernel.Storage.
func (c *Call) Rows(name string, t *tensor.Tensor) Rows {
	if !c.Stored(name, t) {
		return Rows{}
	}
	return c.AnyRows(name, t)
}

// AnyRows requires rows of any dtype.
func (c *Call) AnyRows(name string, t *tensor.Tensor) Rows {
	if !c.On(name, t) {
		return Rows{}
	}
	shape, strides := t.Shape(), t.Strides()
	r := Rows{Tensor: t, Rows: 1, Cols: 1, Block: 1}
	if len(shape) > 0 {
		r.Rows, r.Cols = shape.Rows(), shape.Cols()
	}
	r.Pitch = r.Cols
	if r.Rows >= math.MaxInt32 || r.Cols >= math.MaxInt32 && !t.IsContiguous() {
		c.Decline("shape %v of %s, this impl serves less than 2³¹ rows and columns", shape, name)
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
		c.Decline("strides %v of %s %v, this impl serves dense rows in blocks of one pitch", strides, name, shape)
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

// Numbers requires dense elements of one of these dtypes.
func (c *Call) Numbers(name string, t *tensor.Tensor, want ...tensor.DType) {
	if !c.On(name, t) {
		return
	}
	if !t.IsContiguous() {
		c.Decline("strides %v of %s %v, this impl serves contiguous elements", t.Strides(), name, t.Shape())
	}
	for _, d := range want {
		if t.DType() == d {
			return
		}
	}
	c.Decline("dtype %v of %s, this impl serves %v", t.DType(), name, want)
}

// IndexFlags are the first flags of a program with indices, whose type is INDEX.
var IndexFlags = []string{"INDEX=int", "INDEX=long"}

// Scratch lends n floats or integers of undefined content for kernels of the call. The caller
// releases them when those kernels are queued.
func (c *Call) Scratch(n int) (*opencl.Scratch, error) { return c.Device.Scratch(c.exec.Stream(), n) }

// Index requires dense integers of i32 or i64 and returns the flag of their type.
func (c *Call) Index(name string, t *tensor.Tensor) Flags {
	c.Numbers(name, t, tensor.I32, tensor.I64)
	if t.DType() == tensor.I64 {
		return 2
	}
	return 1
}
