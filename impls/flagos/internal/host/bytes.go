package host

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/tensor"
)

// Bytes is a tensor of elements of one byte, viewed as rows of one length at a constant pitch.
type Bytes struct {
	Data              []byte
	Rows, Cols, Pitch int
}

// Piece returns n elements of a row from a column on.
func (b *Bytes) Piece(r, col, n int) []byte { return b.Data[r*b.Pitch+col:][:n:n] }

// Dense reports whether the elements lie in order without gaps.
func (b *Bytes) Dense() bool { return b.Pitch == b.Cols || b.Rows <= 1 }

// Bytes requires rows of one pitch of u8, bool or fp8.
func (v *Views) Bytes(name string, t *tensor.Tensor) Bytes {
	var data []byte
	pitch, ok := PitchOf(t)
	if !v.OnHost(name, t) {
		return Bytes{}
	}
	switch t.DType() {
	case tensor.U8:
		data = tensor.Data[uint8](t)
	case tensor.Bool:
		data = bytesOf(tensor.Data[bool](t))
	case tensor.F8E4M3:
		data = bytesOf(tensor.Data[tensor.Float8E4M3](t))
	case tensor.F8E5M2:
		data = bytesOf(tensor.Data[tensor.Float8E5M2](t))
	default:
		v.Decline("dtype %v of %s, this impl serves u8, bool and fp8", t.DType(), name)
	}
	if !ok {
		v.Decline("strides %v of %s %v, this impl serves dense rows of one pitch", t.Strides(), name, t.Shape())
	}
	return Bytes{Data: data, Rows: t.Shape().Rows(), Cols: t.Shape().Cols(), Pitch: pitch}
}

func bytesOf[T tensor.Float8E4M3 | tensor.Float8E5M2 | bool](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// ScratchBytes returns scratch as bytes.
func ScratchBytes(s []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
}

// ScratchInts returns scratch as integers.
func ScratchInts(s []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// FP8Format returns the format of an fp8 dtype.
func FP8Format(d tensor.DType) *fp8.Format {
	if d == tensor.F8E5M2 {
		return &fp8.E5M2
	}
	return &fp8.E4M3
}
