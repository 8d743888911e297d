package flagos

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/flagos/internal/fused"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// matrix is a tensor of f32 seen as rows of one length that lie one pitch apart.
type matrix struct {
	data              []float32
	rows, cols, pitch int
}

func (m *matrix) row(r int) []float32 { return m.data[r*m.pitch:][:m.cols:m.cols] }

// from returns the rows from one on.
func (m *matrix) from(r int) fused.Rows { return fused.Rows{Data: m.data[r*m.pitch:], Pitch: m.pitch} }

// dense reports whether the elements lie in order without gaps.
func (m *matrix) dense() bool { return m.pitch == m.cols || m.rows <= 1 }

// views turns operands into slices. It keeps the first reason to decline the
// call and is used before anything is written.
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
	} else if t.Device().Type != device.TypeCPU {
		v.decline("%s lies on %v, this impl serves host memory", name, t.Device())
	}
	return v.err == nil
}

// matrix requires rows of one pitch.
func (v *views) matrix(name string, t *tensor.Tensor) matrix {
	if !v.host(name, t, tensor.F32) {
		return matrix{}
	}
	pitch, ok := pitchOf(t)
	if !ok {
		v.decline("strides %v of %s %v, this impl serves dense rows of one pitch", t.Strides(), name, t.Shape())
		return matrix{}
	}
	return matrix{data: tensor.Data[float32](t), rows: t.Shape().Rows(), cols: t.Shape().Cols(), pitch: pitch}
}

// vector requires dense elements, whatever the axes.
func (v *views) vector(name string, t *tensor.Tensor) []float32 {
	if v.host(name, t, tensor.F32) && v.dense(name, t) {
		return tensor.Data[float32](t)
	}
	return nil
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

// pitchOf returns the distance between the rows of a tensor, and whether its
// last axis is dense and all other axes make up rows of that distance.
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
