package check

import "github.com/primus-fl/primus/tensor"

// The functions of this file read single elements. Unlike At they allocate nothing for tensors in
// host memory. One that lies on a device is copied to the host each time, so loops read from what
// Host returns, and checks of many values are left to the impls there.

// Host returns a tensor with the elements of t in host memory: t itself if it lies there. If t
// cannot be copied, which is reported by the call that follows, all of its elements are 0.
func Host(t *tensor.Tensor) *tensor.Tensor {
	if t.OnHost() {
		return t
	}
	host, err := t.ToHost()
	if err == nil {
		return host
	}
	size := t.NumElements() * t.DType().Size()
	host, err = tensor.FromBytes(make([]byte, size+7)[:size], t.DType(), t.Shape()...)
	if err != nil {
		panic("BUG: check: " + err.Error())
	}
	return host
}

// Element returns element i of a vector of i32.
func Element(t *tensor.Tensor, i int) int {
	t = Host(t)
	return int(tensor.Data[int32](t)[i*t.Strides()[0]])
}

// Integer returns element i of a vector of i32 or i64.
func Integer(t *tensor.Tensor, i int) int {
	if t.DType() == tensor.I32 {
		return Element(t, i)
	}
	t = Host(t)
	return int(tensor.Data[int64](t)[i*t.Strides()[0]])
}

// Flag returns an element of a matrix of bool.
func Flag(t *tensor.Tensor, i, j int) bool {
	t = Host(t)
	return tensor.Data[bool](t)[i*t.Strides()[0]+j*t.Strides()[1]]
}
