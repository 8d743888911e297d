package host

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/tensor"
)

// Half holds elements of 16 bits. Kernels work on f32: their inputs are widened to scratch that
// stays in the first-level cache, and their outputs are rounded from there, to nearest with ties to
// even. The zero Half belongs to elements of f32.
type Half struct {
	bits  []uint16
	dtype tensor.DType // BF16 or F16
}

// ElementsOf returns the elements of a tensor of f32, or of bf16 or f16; the other result is empty.
func ElementsOf(t *tensor.Tensor) (data []float32, h Half) {
	switch t.DType() {
	case tensor.BF16:
		return nil, Half{Patterns(tensor.Data[tensor.BFloat16](t)), tensor.BF16}
	case tensor.F16:
		return nil, Half{Patterns(tensor.Data[tensor.Float16](t)), tensor.F16}
	case tensor.F32:
		return tensor.Data[float32](t), Half{}
	default:
		panic("BUG: flagos: elements of " + t.DType().String())
	}
}

// Patterns returns the bits of numbers of 16 bits.
func Patterns[T tensor.BFloat16 | tensor.Float16](s []T) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// HalfIn returns elements of 16 bits in the memory of buf, two in each of its elements.
func HalfIn(buf []float32, d tensor.DType) Half {
	return Half{unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(buf))), 2*len(buf)), d}
}

// Narrow reports whether the elements have 16 bits.
func (h *Half) Narrow() bool { return h.dtype != tensor.Unspecified }

// DType returns the type of the elements, tensor.Unspecified for f32.
func (h *Half) DType() tensor.DType { return h.dtype }

// Bits returns the bit patterns of the elements.
func (h *Half) Bits() []uint16 { return h.bits }

// Load widens len(dst) elements from index at on.
func (h *Half) Load(dst []float32, at int) {
	if len(dst) == 0 {
		return
	}
	if from := h.bits[at:][:len(dst)]; h.dtype == tensor.BF16 {
		vector.WidenBF16(dst, from)
	} else {
		vector.WidenF16(dst, from)
	}
}

// Store rounds src to the elements from index at on.
func (h *Half) Store(at int, src []float32) {
	if len(src) == 0 {
		return
	}
	if to := h.bits[at:][:len(src)]; h.dtype == tensor.BF16 {
		vector.NarrowBF16(to, src)
	} else {
		vector.NarrowF16(to, src)
	}
}

// From returns the elements from index at on.
func (h Half) From(at int) Half {
	if h.Narrow() {
		h.bits = h.bits[at:]
	}
	return h
}
