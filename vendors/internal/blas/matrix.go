package blas

import (
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// matrix is a tensor viewed as rows of contiguous elements of f32, f64 or bf16.
type matrix struct {
	first          unsafe.Pointer
	dtype          tensor.DType
	rows, cols, ld int
}

// matrixOf flattens the leading axes. It returns false for a tensor whose last axis is not
// contiguous, whose leading axes have no common pitch, or whose rows overlap.
func matrixOf(t *tensor.Tensor) (matrix, bool) {
	shape, strides := t.Shape(), t.Strides()
	m := matrix{first: t.Pointer(), dtype: t.DType(), rows: shape.Rows(), cols: shape.Cols()}
	m.ld = max(m.cols, 1)
	if m.rows == 0 || m.cols == 0 {
		return m, true
	}
	last := len(shape) - 1
	if m.cols > 1 && strides[last] != 1 {
		return m, false
	}
	pitch, next := 0, 0
	for axis := last - 1; axis >= 0; axis-- {
		switch {
		case shape[axis] == 1:
			continue
		case pitch == 0:
			pitch = strides[axis]
			if pitch < m.cols {
				return m, false
			}
		case strides[axis] != next:
			return m, false
		}
		next = strides[axis] * shape[axis]
	}
	m.ld = max(pitch, m.ld)
	return m, true
}

// vector returns a contiguous tensor as a matrix of one row.
func vector(t *tensor.Tensor) matrix {
	n := t.NumElements()
	return matrix{first: t.Pointer(), dtype: t.DType(), rows: 1, cols: n, ld: max(n, 1)}
}

// at returns the address of an element.
func (m *matrix) at(i, j int) unsafe.Pointer {
	return unsafe.Add(m.first, m.dtype.Size()*(i*m.ld+j))
}

// rowOf returns columns lo to hi of a row of a matrix whose elements are T.
func rowOf[T float32 | float64 | tensor.BFloat16](m *matrix, i, lo, hi int) []T {
	return unsafe.Slice((*T)(m.at(i, lo)), hi-lo)
}

// Pitch returns the distance between the rows of a tensor whose leading axes are flattened; false
// for a tensor that is not rows of contiguous elements at one distance. It reads no element.
func Pitch(t *tensor.Tensor) (int, bool) {
	m, ok := matrixOf(t)
	return m.ld, ok
}
