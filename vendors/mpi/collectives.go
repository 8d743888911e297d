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
	if a.Input.DType().Size() == halfSize {
		return allReduceHalves(x, h, a.Input.DType(), halvesOf(a.Input), halvesOf(a.Output), a.Reduction, a.Ranks)
	}
	from, into, n := address(a.Input), address(a.Output), a.Input.NumElements()
	inPlace, size, most := from == into, a.Input.DType().Size(), max(n, 1)
	if h.together {
		most = piece / size
	}
	for lo := 0; lo == 0 || lo < n; lo += most { // once for an empty operand, as on the other ranks
		source := from + uintptr(lo*size)
		if inPlace {
			source = h.inPlace
		}
		if err := h.do("MPI_Allreduce", h.allReduce, source, into+uintptr(lo*size), uintptr(min(most, n-lo)),
			h.datatype(a.Input.DType()), h.operator(a.Reduction), h.ranks); err != nil {
			return err
		}
	}
	divide(a.Output, a.Reduction, a.Ranks)
	return nil
}

func reduce(x *opregistry.Exec, h *member, a collective.ReduceArgs) error {
	if a.Input.DType().Size() == halfSize {
		return allReduceHalves(x, h, a.Input.DType(), halvesOf(a.Input), halvesOf(a.Output), a.Reduction, a.Ranks)
	}
	from, into := address(a.Input), uintptr(0)
	if a.Output != nil {
		if into = address(a.Output); from == into {
			from = h.inPlace
		}
	}
	if err := h.do("MPI_Reduce", h.reduce, from, into, uintptr(a.Input.NumElements()),
		h.datatype(a.Input.DType()), h.operator(a.Reduction), uintptr(a.Root), h.ranks); err != nil {
		return err
	}
	divide(a.Output, a.Reduction, a.Ranks)
	return nil
}

func reduceScatter(x *opregistry.Exec, h *member, a collective.ReduceScatterArgs) error {
	if a.Input.DType().Size() == halfSize {
		return reduceScatterHalves(x, h, a.Input.DType(), halvesOf(a.Input), halvesOf(a.Output), a.Reduction, a.Ranks)
	}
	if h.together {
		return reduceScatterHere(x, h, a)
	}
	if err := h.do("MPI_Reduce_scatter_block", h.reduceScatter, address(a.Input), address(a.Output), uintptr(a.Output.NumElements()),
		h.datatype(a.Input.DType()), h.operator(a.Reduction), h.ranks); err != nil {
		return err
	}
	divide(a.Output, a.Reduction, a.Ranks)
	return nil
}

// reduceScatterHere is reduceScatter for ranks on one machine: each receives its part of the
// elements of all, and reduces them in the order of the ranks. The function of the library gets
// memory for large operands in each call, and is several times slower.
func reduceScatterHere(x *opregistry.Exec, h *member, a collective.ReduceScatterArgs) error {
	d, n := a.Output.DType(), a.Output.NumElements()
	numbers := x.Scratch(a.Ranks*n*d.Size()/4 + 1)
	defer x.Release(numbers)
	parts := uintptr(unsafe.Pointer(unsafe.SliceData(numbers)))
	count, kind := h.bits(d, n)
	if err := h.do("MPI_Alltoall", h.allToAll, address(a.Input), count, kind, parts, count, kind, h.ranks); err != nil {
		return err
	}
	size := n * d.Size()
	first := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), size)
	copy(unsafe.Slice((*byte)(a.Output.Pointer()), size), first)
	for q := 1; q < a.Ranks; q++ {
		if err := h.do("MPI_Reduce_local", h.reduceLocal, parts+uintptr(q*size), address(a.Output), uintptr(n), h.datatype(d), h.operator(a.Reduction)); err != nil {
			return err
		}
	}
	divide(a.Output, a.Reduction, a.Ranks)
	return nil
}

// divide divides a sum of floats by the number of ranks, by a product with the rounded reciprocal,
// when the reduction is avg. A rank without an output has none.
func divide(t *tensor.Tensor, r collective.Reduction, ranks int) {
	switch {
	case t == nil || r != collective.Avg:
	case t.DType() == tensor.F64:
		scale(tensor.Data[float64](t), 1/float64(ranks))
	default:
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
