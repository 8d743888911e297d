package mpi

import (
	"math"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// halfSize is the size in bytes of bf16 and f16. MPI does not know them: they are sent as bytes,
// and each rank reduces its part of them, in f32 and in the order of the ranks.
const halfSize = 2

// halvesOf returns the elements of a tensor of bf16 or f16, nil without one.
func halvesOf(t *tensor.Tensor) []uint16 {
	if t == nil {
		return nil
	}
	return unsafe.Slice((*uint16)(t.Pointer()), t.NumElements())
}

// allReduceHalves is allReduce for bf16 and f16. A rank without an output takes part, too.
func allReduceHalves(x *opregistry.Exec, h *member, d tensor.DType, in, out []uint16, r collective.Reduction, ranks int) error {
	part := (min(len(in), piece/halfSize) + ranks - 1) / ranks
	numbers := x.Scratch((2*ranks+1)*part/halfSize + 1)
	defer x.Release(numbers)
	memory := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(numbers))), (2*ranks+1)*part)
	all, parts, own := memory[:ranks*part], memory[ranks*part:2*ranks*part], memory[2*ranks*part:]
	for lo := 0; lo < len(in); lo += len(all) {
		n := copy(all, in[lo:])
		clear(all[n:])
		if err := h.swapHalves(all, parts, ranks); err != nil {
			return err
		}
		reduceParts(d, parts, own, r, ranks)
		count, kind := h.bits(d, part)
		if err := h.do("MPI_Allgather", h.allGather, begin(own), count, kind, begin(all), count, kind, h.ranks); err != nil {
			return err
		}
		if out != nil {
			copy(out[lo:], all[:n])
		}
	}
	return nil
}

// reduceScatterHalves is reduceScatter for bf16 and f16.
func reduceScatterHalves(x *opregistry.Exec, h *member, d tensor.DType, in, out []uint16, r collective.Reduction, ranks int) error {
	numbers := x.Scratch(len(in)/halfSize + 1)
	defer x.Release(numbers)
	parts := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(numbers))), len(in))
	if err := h.swapHalves(in, parts, ranks); err != nil {
		return err
	}
	reduceParts(d, parts, out, r, ranks)
	return nil
}

// swapHalves gives each rank its part of the elements of all ranks, one after the other.
func (h *member) swapHalves(in, parts []uint16, ranks int) error {
	count, kind := h.bits(tensor.BF16, len(in)/ranks)
	return h.do("MPI_Alltoall", h.allToAll, begin(in), count, kind, begin(parts), count, kind, h.ranks)
}

// begin returns where elements are, as address does.
func begin(elements []uint16) uintptr {
	if len(elements) == 0 {
		return uintptr(unsafe.Pointer(&nothing))
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(elements)))
}

// reduceParts reduces the elements of all ranks, one part after the other, and rounds the results
// once.
func reduceParts(d tensor.DType, parts, out []uint16, r collective.Reduction, ranks int) {
	var sums, next [1024]float32 // stay in the first cache
	for lo := 0; lo < len(out); lo += len(sums) {
		sums := sums[:min(len(sums), len(out)-lo)]
		next := next[:len(sums)]
		widen(d, sums, parts[lo:])
		for q := 1; q < ranks; q++ {
			widen(d, next, parts[q*len(out)+lo:])
			combine(sums, next, r)
		}
		if r == collective.Avg {
			scale(sums, 1/float32(ranks))
		}
		round(d, out[lo:], sums)
	}
}

// combine reduces numbers with those of another rank.
func combine(sums, next []float32, r collective.Reduction) {
	next = next[:len(sums)]
	switch r {
	case collective.Max:
		for i, v := range next {
			sums[i] = max(sums[i], v)
		}
	case collective.Min:
		for i, v := range next {
			sums[i] = min(sums[i], v)
		}
	case collective.Sum, collective.Avg: // divided by the number of ranks afterwards
		for i, v := range next {
			sums[i] += v
		}
	default:
		panic("BUG: mpi: no reduction " + r.String())
	}
}

// widen converts elements of bf16 or f16 to f32, as many as there is room for.
func widen(d tensor.DType, to []float32, from []uint16) {
	from = from[:len(to)]
	if d == tensor.BF16 {
		for i, v := range from {
			to[i] = math.Float32frombits(uint32(v) << 16)
		}
		return
	}
	for i, v := range from {
		to[i] = tensor.Float16(v).Float32()
	}
}

// round converts numbers to bf16 or f16.
func round(d tensor.DType, to []uint16, from []float32) {
	to = to[:len(from)]
	if d == tensor.BF16 {
		for i, v := range from {
			to[i] = uint16(tensor.ToBFloat16(v))
		}
		return
	}
	for i, v := range from {
		to[i] = uint16(tensor.ToFloat16(v))
	}
}
