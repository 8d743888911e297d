package mpi

import (
	"math"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// maxCount is the largest number of elements that a function of MPI takes.
const maxCount = math.MaxInt32

// piece is how many bytes all_reduce passes to the library at a time when all ranks are on one
// machine. What they exchange goes through memory that they share, and so much of it stays in the
// caches.
const piece = 4 << 20

func allReduce(x *opregistry.Exec, h *member, a collective.AllReduceArgs) error {
	return reduced(x, a.Input, a.Output, a.Reduction, a.Ranks, func(in, out *tensor.Tensor) error {
		from, into, n := address(in), address(out), in.NumElements()
		inPlace, size, most := from == into, in.DType().Size(), max(n, 1)
		if h.together {
			most = piece / size
		}
		for lo := 0; lo == 0 || lo < n; lo += most { // once for an empty operand, as on the other ranks
			source := from + uintptr(lo*size)
			if inPlace {
				source = h.inPlace
			}
			if err := h.do("MPI_Allreduce", h.allReduce, source, into+uintptr(lo*size), uintptr(min(most, n-lo)),
				h.datatype(in.DType()), h.operator(a.Reduction), h.ranks); err != nil {
				return err
			}
		}
		return nil
	})
}

func reduce(x *opregistry.Exec, h *member, a collective.ReduceArgs) error {
	return reduced(x, a.Input, a.Output, a.Reduction, a.Ranks, func(in, out *tensor.Tensor) error {
		from, into := address(in), uintptr(0)
		if out != nil {
			if into = address(out); from == into {
				from = h.inPlace
			}
		}
		return h.do("MPI_Reduce", h.reduce, from, into, uintptr(in.NumElements()),
			h.datatype(in.DType()), h.operator(a.Reduction), uintptr(a.Root), h.ranks)
	})
}

func reduceScatter(x *opregistry.Exec, h *member, a collective.ReduceScatterArgs) error {
	return reduced(x, a.Input, a.Output, a.Reduction, a.Ranks, func(in, out *tensor.Tensor) error {
		return h.do("MPI_Reduce_scatter_block", h.reduceScatter, address(in), address(out), uintptr(out.NumElements()),
			h.datatype(in.DType()), h.operator(a.Reduction), h.ranks)
	})
}

// reduced calls a function that reduces, with f32 in place of bf16, and divides its result by the
// number of ranks when the reduction is avg.
func reduced(x *opregistry.Exec, in, out *tensor.Tensor, r collective.Reduction, ranks int, call func(in, out *tensor.Tensor) error) error {
	wideIn, wideOut := in, out
	if in.DType() == tensor.BF16 {
		numbers := x.Scratch(in.NumElements())
		defer x.Release(numbers)
		for i, v := range tensor.Data[tensor.BFloat16](in) {
			numbers[i] = v.Float32()
		}
		wideIn = vector(numbers)
		if out != nil {
			sums := x.Scratch(out.NumElements())
			defer x.Release(sums)
			wideOut = vector(sums)
		}
	}
	if err := call(wideIn, wideOut); err != nil || out == nil {
		return err
	}
	if r == collective.Avg {
		divide(wideOut, ranks)
	}
	if out.DType() == tensor.BF16 {
		narrow := tensor.Data[tensor.BFloat16](out)
		for i, v := range tensor.Data[float32](wideOut) {
			narrow[i] = tensor.ToBFloat16(v)
		}
	}
	return nil
}

// vector returns a tensor of numbers.
func vector(numbers []float32) *tensor.Tensor {
	t, err := tensor.FromSlice(numbers, len(numbers))
	if err != nil {
		panic("BUG: mpi: " + err.Error())
	}
	return t
}

// divide divides floats by the number of ranks, by a product with the rounded reciprocal.
func divide(t *tensor.Tensor, ranks int) {
	if t.DType() == tensor.F64 {
		scale(tensor.Data[float64](t), 1/float64(ranks))
	} else {
		scale(tensor.Data[float32](t), 1/float32(ranks))
	}
}

func scale[T float32 | float64](numbers []T, by T) {
	for i := range numbers {
		numbers[i] *= by
	}
}

func allGather(_ *opregistry.Exec, h *member, a collective.AllGatherArgs) error {
	count, kind := h.bits(a.Input.DType(), a.Input.NumElements())
	return h.do("MPI_Allgather", h.allGather, address(a.Input), count, kind, address(a.Output), count, kind, h.ranks)
}

func broadcast(_ *opregistry.Exec, h *member, a collective.BroadcastArgs) error {
	count, kind := h.bits(a.Buffer.DType(), a.Buffer.NumElements())
	return h.do("MPI_Bcast", h.broadcast, address(a.Buffer), count, kind, uintptr(a.Root), h.ranks)
}

func allToAll(_ *opregistry.Exec, h *member, a collective.AllToAllArgs) error {
	count, kind := h.bits(a.Input.DType(), a.Input.NumElements()/a.Ranks)
	return h.do("MPI_Alltoall", h.allToAll, address(a.Input), count, kind, address(a.Output), count, kind, h.ranks)
}

func barrier(_ *opregistry.Exec, h *member, _ collective.BarrierArgs) error {
	return h.do("MPI_Barrier", h.barrier, h.ranks)
}

// bits returns how n elements are sent that nobody computes with.
func (h *handle) bits(d tensor.DType, n int) (count, datatype uintptr) {
	switch n *= bytewise(d); d.Size() {
	case 4:
		return uintptr(n), h.int32
	case 8:
		return uintptr(n), h.int64
	}
	return uintptr(n), h.anything
}

// bytewise returns how many MPI elements an element is sent as, at most.
func bytewise(d tensor.DType) int {
	if d.Size() == 4 || d.Size() == 8 {
		return 1
	}
	return d.Size()
}

// nothing is where empty operands begin: MPI does not take a nil pointer for them.
var nothing [8]byte

// address returns where the elements of a tensor are. They stay there: Go does not move memory that
// is not on a stack, and the tensor keeps it.
func address(t *tensor.Tensor) uintptr {
	if t.NumElements() == 0 {
		return uintptr(unsafe.Pointer(&nothing))
	}
	return uintptr(t.Pointer())
}
