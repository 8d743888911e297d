package flagos

import (
	"github.com/primus-fl/primus/device"
	kernel "github.com/primus-fl/primus/internal/kernel/norm"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// matrix is a tensor viewed as rows of one length at a constant pitch. Its elements are f32, in
// data, or narrow, in half.
type matrix struct {
	data []float32
	half
	rows, cols, pitch int
}

// row returns a row of f32.
func (m *matrix) row(r int) []float32 { return m.data[r*m.pitch:][:m.cols:m.cols] }

// piece returns n elements of a row from a column on. Narrow elements are widened to buf.
func (m *matrix) piece(r, col, n int, buf []float32) []float32 {
	at := r*m.pitch + col
	if !m.narrow() {
		return m.data[at:][:n]
	}
	m.load(buf[:n], at)
	return buf[:n]
}

// place returns the memory in which to write n elements of a row from a column on: the row itself
// if it is f32, else buf, from which settle stores them.
func (m *matrix) place(r, col, n int, buf []float32) []float32 {
	if !m.narrow() {
		return m.data[r*m.pitch+col:][:n]
	}
	return buf[:n]
}

// settle stores elements that were written to the memory that place returned.
func (m *matrix) settle(r, col int, x []float32) {
	if m.narrow() {
		m.store(r*m.pitch+col, x)
	}
}

// put stores elements of a row from a column on.
func (m *matrix) put(r, col int, x []float32) {
	at := r*m.pitch + col
	if m.narrow() {
		m.store(at, x)
	} else {
		copy(m.data[at:][:len(x)], x)
	}
}

// take copies a row of a matrix of the same dtype.
func (m *matrix) take(r int, from *matrix, row int) {
	if m.narrow() {
		copy(m.bits[r*m.pitch:][:m.cols], from.bits[row*from.pitch:])
	} else {
		copy(m.row(r), from.row(row))
	}
}

// zero clears a row.
func (m *matrix) zero(r int) {
	if m.narrow() {
		clear(m.bits[r*m.pitch:][:m.cols])
	} else {
		clear(m.row(r))
	}
}

// sub returns a range of rows.
func (m matrix) sub(first, rows int) matrix {
	m.rows = rows
	if rows == 0 || m.cols == 0 {
		return m
	}
	if m.narrow() {
		m.half = m.half.from(first * m.pitch)
	} else {
		m.data = m.data[first*m.pitch:]
	}
	return m
}

// rowsFrom returns the rows of f32 from row r on.
func (m *matrix) rowsFrom(r int) kernel.Rows {
	return kernel.Rows{Data: m.data[r*m.pitch:], Pitch: m.pitch}
}

// dense reports whether the elements lie in order without gaps.
func (m *matrix) dense() bool { return m.pitch == m.cols || m.rows <= 1 }

// views turns operands into slices. It keeps the first reason to decline the call; it is used
// before anything is written.
type views struct{ err error }

func (v *views) decline(format string, args ...any) {
	if v.err == nil {
		v.err = opregistry.Unsupported(format, args...)
	}
}

// host requires an operand of this dtype in host memory.
func (v *views) host(name string, t *tensor.Tensor, want tensor.DType) bool {
	if t.DType() != want {
		v.decline("dtype %v of %s, this impl serves %v", t.DType(), name, want)
	}
	return v.onHost(name, t)
}

// stored requires an operand of f32, bf16 or f16 in host memory.
func (v *views) stored(name string, t *tensor.Tensor) bool {
	if d := t.DType(); d != tensor.F32 && d != tensor.BF16 && d != tensor.F16 {
		v.decline("dtype %v of %s, this impl serves f32, bf16 and f16", d, name)
	}
	return v.onHost(name, t)
}

func (v *views) onHost(name string, t *tensor.Tensor) bool {
	if t.Device().Type != device.TypeCPU {
		v.decline("%s lies on %v, this impl serves host memory", name, t.Device())
	}
	return v.err == nil
}

// matrix requires rows of one pitch.
func (v *views) matrix(name string, t *tensor.Tensor) matrix {
	if !v.stored(name, t) {
		return matrix{}
	}
	pitch, ok := pitchOf(t)
	if !ok {
		v.decline("strides %v of %s %v, this impl serves dense rows of one pitch", t.Strides(), name, t.Shape())
		return matrix{}
	}
	m := matrix{rows: t.Shape().Rows(), cols: t.Shape().Cols(), pitch: pitch}
	m.data, m.half = elementsOf(t)
	return m
}

// flat requires dense elements, whatever the axes, and returns them as one row.
func (v *views) flat(name string, t *tensor.Tensor) matrix {
	if !v.stored(name, t) || !v.dense(name, t) {
		return matrix{}
	}
	return flatten(t)
}

// flatten returns dense elements as one row.
func flatten(t *tensor.Tensor) matrix {
	n := t.NumElements()
	m := matrix{rows: 1, cols: n, pitch: n}
	m.data, m.half = elementsOf(t)
	return m
}

// vector requires dense f32, whatever the axes.
func (v *views) vector(name string, t *tensor.Tensor) []float32 {
	if v.host(name, t, tensor.F32) && v.dense(name, t) {
		return tensor.Data[float32](t)
	}
	return nil
}

// number requires one element of f32.
func (v *views) number(name string, t *tensor.Tensor) float32 {
	if x := v.vector(name, t); len(x) == 1 {
		return x[0]
	}
	return 0
}

// int32s is vector for i32.
func (v *views) int32s(name string, t *tensor.Tensor) []int32 {
	if v.host(name, t, tensor.I32) && v.dense(name, t) {
		return tensor.Data[int32](t)
	}
	return nil
}

func (v *views) dense(name string, t *tensor.Tensor) bool {
	if !t.IsContiguous() {
		v.decline("strides %v of %s %v, this impl serves contiguous memory", t.Strides(), name, t.Shape())
	}
	return v.err == nil
}

// indexes holds integers of either dtype.
type indexes struct {
	narrow []int32
	wide   []int64
}

// from returns the integers from index i on.
func (x indexes) from(i int) indexes {
	if x.narrow != nil {
		return indexes{narrow: x.narrow[i:]}
	}
	return indexes{wide: x.wide[i:]}
}

func (x *indexes) at(i int) int {
	if x.narrow != nil {
		return int(x.narrow[i])
	}
	return int(x.wide[i])
}

// indexes is vector for i32 or i64.
func (v *views) indexes(name string, t *tensor.Tensor) indexes {
	if t.DType() == tensor.I32 {
		return indexes{narrow: v.int32s(name, t)}
	}
	if v.host(name, t, tensor.I64) && v.dense(name, t) {
		return indexes{wide: tensor.Data[int64](t)}
	}
	return indexes{}
}

// pitchOf returns the distance between the rows of a tensor, and whether its last axis is dense and
// its other axes form rows at that distance.
func pitchOf(t *tensor.Tensor) (pitch int, ok bool) {
	shape, strides := t.Shape(), t.Strides()
	if t.IsContiguous() {
		return shape.Cols(), true
	}
	last := len(shape) - 1
	if shape[last] > 1 && strides[last] != 1 {
		return 0, false
	}
	pitch = shape[last]
	found, next := false, 0
	for axis := last - 1; axis >= 0; axis-- {
		if shape[axis] == 1 {
			continue
		}
		if found && strides[axis] != next {
			return 0, false
		}
		if !found {
			found, pitch = true, strides[axis]
		}
		next = strides[axis] * shape[axis]
	}
	return pitch, true
}
