package check

import "github.com/primus-fl/primus/tensor"

// The functions of this file read single elements. Unlike At they allocate nothing.

// Element returns element i of a vector of i32.
func Element(t *tensor.Tensor, i int) int {
	return int(tensor.Data[int32](t)[i*t.Strides()[0]])
}

// Integer returns element i of a vector of i32 or i64.
func Integer(t *tensor.Tensor, i int) int {
	if t.DType() == tensor.I32 {
		return Element(t, i)
	}
	return int(tensor.Data[int64](t)[i*t.Strides()[0]])
}

// Flag returns an element of a matrix of bool.
func Flag(t *tensor.Tensor, i, j int) bool {
	return tensor.Data[bool](t)[i*t.Strides()[0]+j*t.Strides()[1]]
}
