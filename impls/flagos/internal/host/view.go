package host

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Matrix is a tensor viewed as rows of one length at a constant pitch. Its elements are f32, in
// Data, or narrow, in Half.
type Matrix struct {
	Data []float32
	Half
	Rows, Cols, Pitch int

	// Block is the number of rows after which the next block of rows begins, Jump elements after
	// the last one; 0 for rows of one pitch. Only Views.Blocks returns such a matrix.
	Block, Jump int
}

// At returns the index of the first element of a row.
func (m *Matrix) At(r int) int {
	if m.Block == 0 {
		return r * m.Pitch
	}
	return r/m.Block*m.Jump + r%m.Block*m.Pitch
}

// Row returns a row of f32.
func (m *Matrix) Row(r int) []float32 { return m.Data[r*m.Pitch:][:m.Cols:m.Cols] }

// Piece returns n elements of a row from a column on. Narrow elements are widened to buf.
func (m *Matrix) Piece(r, col, n int, buf []float32) []float32 {
	at := r*m.Pitch + col
	if !m.Narrow() {
		return m.Data[at:][:n]
	}
	m.Load(buf[:n], at)
	return buf[:n]
}

// Place returns the memory in which to write n elements of a row from a column on: the row itself
// if it is f32, else buf, from which Settle stores them.
func (m *Matrix) Place(r, col, n int, buf []float32) []float32 {
	if !m.Narrow() {
		return m.Data[r*m.Pitch+col:][:n]
	}
	return buf[:n]
}

// Settle stores elements that were written to the memory that Place returned.
func (m *Matrix) Settle(r, col int, x []float32) {
	if m.Narrow() {
		m.Store(r*m.Pitch+col, x)
	}
}

// Put stores elements of a row from a column on.
func (m *Matrix) Put(r, col int, x []float32) {
	at := r*m.Pitch + col
	if m.Narrow() {
		m.Store(at, x)
	} else {
		copy(m.Data[at:][:len(x)], x)
	}
}

// Take copies a row of a matrix of the same dtype.
func (m *Matrix) Take(r int, from *Matrix, row int) {
	if m.Narrow() {
		copy(m.bits[r*m.Pitch:][:m.Cols], from.bits[row*from.Pitch:])
	} else {
		copy(m.Row(r), from.Row(row))
	}
}

// Zero clears a row.
func (m *Matrix) Zero(r int) {
	if m.Narrow() {
		clear(m.bits[r*m.Pitch:][:m.Cols])
	} else {
		clear(m.Row(r))
	}
}

// Sub returns a range of rows.
func (m Matrix) Sub(first, rows int) Matrix {
	m.Rows = rows
	if rows == 0 || m.Cols == 0 {
		return m
	}
	if m.Narrow() {
		m.Half = m.Half.From(first * m.Pitch)
	} else {
		m.Data = m.Data[first*m.Pitch:]
	}
	return m
}

// Dense reports whether the elements lie in order without gaps.
func (m *Matrix) Dense() bool { return m.Block == 0 && m.Pitch == m.Cols || m.Rows <= 1 }

// Views turns operands into slices. It keeps the first reason to decline the call; it is used
// before anything is written.
type Views struct{ Err error }

// Decline keeps a reason to decline the call, unless there is one already.
func (v *Views) Decline(format string, args ...any) {
	if v.Err == nil {
		v.Err = opregistry.Unsupported(format, args...)
	}
}

// Host requires an operand of this dtype in host memory.
func (v *Views) Host(name string, t *tensor.Tensor, want tensor.DType) bool {
	if t.DType() != want {
		v.Decline("dtype %v of %s, this impl serves %v", t.DType(), name, want)
	}
	return v.OnHost(name, t)
}

// Stored requires an operand of f32, bf16 or f16 in host memory.
func (v *Views) Stored(name string, t *tensor.Tensor) bool {
	if d := t.DType(); d != tensor.F32 && d != tensor.BF16 && d != tensor.F16 {
		v.Decline("dtype %v of %s, this impl serves f32, bf16 and f16", d, name)
	}
	return v.OnHost(name, t)
}

func (v *Views) OnHost(name string, t *tensor.Tensor) bool {
	if t.Device().Type != device.TypeCPU {
		v.Decline("%s lies on %v, this impl serves host memory", name, t.Device())
	}
	return v.Err == nil
}

// Matrix requires rows of one pitch.
func (v *Views) Matrix(name string, t *tensor.Tensor) Matrix {
	if !v.Stored(name, t) {
		return Matrix{}
	}
	pitch, ok := PitchOf(t)
	if !ok {
		v.Decline("strides %v of %s %v, this impl serves dense rows of one pitch", t.Strides(), name, t.Shape())
		return Matrix{}
	}
	m := Matrix{Rows: t.Shape().Rows(), Cols: t.Shape().Cols(), Pitch: pitch}
	m.Data, m.Half = ElementsOf(t)
	return m
}

// Blocks requires rows of one pitch, or blocks of such rows at one distance, as those of some of
// the heads of every token. A kernel goes through them block by block and finds a row with At.
func (v *Views) Blocks(name string, t *tensor.Tensor) Matrix {
	if !v.Stored(name, t) {
		return Matrix{}
	}
	if _, ok := PitchOf(t); ok {
		return v.Matrix(name, t)
	}
	m := Matrix{Rows: t.Shape().Rows(), Cols: t.Shape().Cols()}
	if m.Block, m.Pitch, m.Jump = blocksOf(t); m.Block == 0 {
		v.Decline("strides %v of %s %v, this impl serves dense rows in blocks of one pitch", t.Strides(), name, t.Shape())
		return Matrix{}
	}
	m.Data, m.Half = ElementsOf(t)
	return m
}

// blocksOf returns the rows of a block, their pitch and the distance of blocks; 0 rows if the rows
// of a tensor do not form blocks.
func blocksOf(t *tensor.Tensor) (rows, pitch, jump int) {
	shape, strides := t.Shape(), t.Strides()
	last := len(shape) - 1
	if shape[last] > 1 && strides[last] != 1 {
		return 0, 0, 0
	}
	rows = 1
	next := 0
	for axis := last - 1; axis >= 0; axis-- {
		switch {
		case shape[axis] == 1:
			continue
		case strides[axis] == 0:
			return 0, 0, 0
		case pitch == 0:
			pitch = strides[axis]
		case strides[axis] == next:
		case jump == 0:
			jump = strides[axis]
		default:
			return 0, 0, 0
		}
		if jump == 0 {
			rows *= shape[axis]
		}
		next = strides[axis] * shape[axis]
	}
	return rows, pitch, jump
}

// Flat requires dense elements, whatever the axes, and returns them as one row.
func (v *Views) Flat(name string, t *tensor.Tensor) Matrix {
	if !v.Stored(name, t) || !v.Dense(name, t) {
		return Matrix{}
	}
	return Flatten(t)
}

// Flatten returns dense elements as one row.
func Flatten(t *tensor.Tensor) Matrix {
	n := t.NumElements()
	m := Matrix{Rows: 1, Cols: n, Pitch: n}
	m.Data, m.Half = ElementsOf(t)
	return m
}

// Vector requires dense f32, whatever the axes.
func (v *Views) Vector(name string, t *tensor.Tensor) []float32 {
	if v.Host(name, t, tensor.F32) && v.Dense(name, t) {
		return tensor.Data[float32](t)
	}
	return nil
}

// Number requires one element of f32.
func (v *Views) Number(name string, t *tensor.Tensor) float32 {
	if x := v.Vector(name, t); len(x) == 1 {
		return x[0]
	}
	return 0
}

// Int32s is Vector for i32.
func (v *Views) Int32s(name string, t *tensor.Tensor) []int32 {
	if v.Host(name, t, tensor.I32) && v.Dense(name, t) {
		return tensor.Data[int32](t)
	}
	return nil
}

// Dense requires elements in order without gaps.
func (v *Views) Dense(name string, t *tensor.Tensor) bool {
	if !t.IsContiguous() {
		v.Decline("strides %v of %s %v, this impl serves contiguous memory", t.Strides(), name, t.Shape())
	}
	return v.Err == nil
}

// Indexes holds integers of either dtype.
type Indexes struct {
	narrow []int32
	wide   []int64
}

// From returns the integers from index i on.
func (x Indexes) From(i int) Indexes {
	if x.narrow != nil {
		return Indexes{narrow: x.narrow[i:]}
	}
	return Indexes{wide: x.wide[i:]}
}

func (x *Indexes) At(i int) int {
	if x.narrow != nil {
		return int(x.narrow[i])
	}
	return int(x.wide[i])
}

// Set stores an integer.
func (x *Indexes) Set(i, v int) {
	if x.narrow != nil {
		x.narrow[i] = int32(v)
	} else {
		x.wide[i] = int64(v)
	}
}

// Indexes is Vector for i32 or i64.
func (v *Views) Indexes(name string, t *tensor.Tensor) Indexes {
	if t.DType() == tensor.I32 {
		return Indexes{narrow: v.Int32s(name, t)}
	}
	if v.Host(name, t, tensor.I64) && v.Dense(name, t) {
		return Indexes{wide: tensor.Data[int64](t)}
	}
	return Indexes{}
}

// PitchOf returns the distance between the rows of a tensor, and whether its last axis is dense and
// its other axes form rows at that distance.
func PitchOf(t *tensor.Tensor) (pitch int, ok bool) {
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
