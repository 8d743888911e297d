package tensortest

import (
	"math"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// elements returns the number of elements of a shape, and ends the test when no tensor can have
// that shape.
func elements(t TB, d tensor.DType, shape []int) int {
	t.Helper()
	if !d.Valid() {
		t.Fatalf("tensortest: got %v, want a valid dtype", d)
	}
	n := 1
	for _, axis := range shape {
		if axis < 0 || axis > math.MaxInt32 || n*axis > math.MaxInt32 {
			t.Fatalf("tensortest: got shape %v, want axes >= 0 and at most %d elements", shape, math.MaxInt32)
		}
		n *= axis
	}
	return n
}

func rowMajor(shape []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
	}
	return strides
}

// extent returns the number of elements from the first to the last, gaps included.
func extent(shape, strides []int) int {
	last := 0
	for i, n := range shape {
		if n == 0 {
			return 0
		}
		last += (n - 1) * strides[i]
	}
	return last + 1
}

// words returns zeroed Go memory of n bytes that is aligned for every dtype.
func words(n int) []byte {
	raw := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(raw))), n)
}

// over returns a vector of dtype d over mem, which is aligned for d.
func over(t TB, d tensor.DType, mem []byte) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromBytes(mem, d, len(mem)/d.Size())
	if err != nil {
		t.Fatalf("tensortest: %v", err)
	}
	return x
}

func view(t TB, x *tensor.Tensor, shape, strides []int, offset int) *tensor.Tensor {
	t.Helper()
	v, err := x.AsStrided(shape, strides, offset)
	if err != nil {
		t.Fatalf("tensortest: %v", err)
	}
	return v
}

// memory returns the bytes from x's first element to its last one.
func memory(x *tensor.Tensor) []byte {
	n := extent(x.Shape(), x.Strides())
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(x.Pointer()), n*x.DType().Size())
}
