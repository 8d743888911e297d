package model

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/tensor"
)

// Routes sends rows of activations to the ranks that have their experts, and back. The experts are
// divided evenly, in order.
type Routes struct {
	world          *world.World
	experts, width int // of all ranks, and elements in a row
	dtype          tensor.DType

	counts     []int32 // by rank and expert: the rows that the rank has for the expert
	own        []int32 // by expert of this rank: rows of all ranks
	room       int     // rows from one rank to another, at most
	send, take buffer
}

// NewRoutes returns the routes of rows of width elements.
func NewRoutes(w *world.World, experts, width int, d tensor.DType) *Routes {
	n := experts / w.Ranks
	return &Routes{
		world: w, experts: experts, width: width, dtype: d,
		counts: make([]int32, experts*w.Ranks), own: make([]int32, n),
	}
}

// Plan tells all ranks how many of the rows that this one has go to each expert. It returns the
// number of rows for each expert of this rank, which are valid until the next Plan, and their sum.
func (r *Routes) Plan(have int, counts *tensor.Tensor) (own []int32, rows int, err error) {
	if err := r.world.GatherInto("count the rows of experts", counts, vector(r.counts)); err != nil {
		return nil, 0, err
	}
	if r.world.Traced() {
		r.even(have)
	}
	r.room = 0
	for from := range r.world.Ranks {
		for to := range r.world.Ranks {
			r.room = max(r.room, r.between(from, to))
		}
	}
	first := r.world.Rank * len(r.own)
	for i := range r.own {
		r.own[i] = 0
		for from := range r.world.Ranks {
			r.own[i] += r.counts[from*r.experts+first+i]
		}
		rows += int(r.own[i])
	}
	return r.own, rows, nil
}

// even divides rows of each rank evenly among the experts.
func (r *Routes) even(rows int) {
	for i := range r.counts {
		r.counts[i] = int32((rows + r.experts - 1 - i%r.experts) / r.experts)
	}
}

// between is the number of rows that a rank has for the experts of another one.
func (r *Routes) between(from, to int) int {
	n, sum := len(r.own), 0
	for _, c := range r.counts[from*r.experts+to*n : from*r.experts+(to+1)*n] {
		sum += int(c)
	}
	return sum
}

// Out sends the rows of this rank, one expert after the other, and receives those for its experts,
// in the same order and for each expert one rank after the other.
func (r *Routes) Out(rows, into *tensor.Tensor) error {
	return r.exchange("send rows to their experts", rows, into, true)
}

// Back is the inverse of Out.
func (r *Routes) Back(rows, into *tensor.Tensor) error {
	return r.exchange("return rows of experts", rows, into, false)
}

func (r *Routes) exchange(what string, rows, into *tensor.Tensor, out bool) error {
	size := r.width * r.dtype.Size()
	length := r.world.Ranks * r.room * size
	send, take := r.send.of(length), r.take.of(length)
	from, to := bytes(rows), bytes(into)
	if out {
		r.apart(func(at, slot, n int) { copy(send[slot*size:], from[at*size:(at+n)*size]) })
	} else {
		r.together(func(at, slot, n int) { copy(send[slot*size:], from[at*size:(at+n)*size]) })
	}
	if err := r.world.Swap(what, vector(send), vector(take)); err != nil {
		return err
	}
	if out {
		r.together(func(at, slot, n int) { copy(to[at*size:], take[slot*size:(slot+n)*size]) })
	} else {
		r.apart(func(at, slot, n int) { copy(to[at*size:], take[slot*size:(slot+n)*size]) })
	}
	return nil
}

// apart calls move for the rows of this rank that go to one other rank: n rows from at on, and
// where they lie in the message of all ranks.
func (r *Routes) apart(move func(at, slot, n int)) {
	at := 0
	for to := range r.world.Ranks {
		n := r.between(r.world.Rank, to)
		move(at, to*r.room, n)
		at += n
	}
}

// together calls move for the rows of each expert of this rank that come from one other rank.
func (r *Routes) together(move func(at, slot, n int)) {
	first := r.world.Rank * len(r.own)
	slots := make([]int, r.world.Ranks)
	for from := range slots {
		slots[from] = from * r.room
	}
	at := 0
	for i := range r.own {
		for from := range slots {
			n := int(r.counts[from*r.experts+first+i])
			move(at, slots[from], n)
			at += n
			slots[from] += n
		}
	}
}

// buffer is memory that grows when more is asked for.
type buffer []byte

func (b *buffer) of(n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n+n/4)
	}
	return (*b)[:n]
}

// bytes returns the memory of a contiguous tensor.
func bytes(t *tensor.Tensor) []byte {
	return unsafe.Slice((*byte)(t.Pointer()), t.NumElements()*t.DType().Size())
}

func vector[T tensor.Element](numbers []T) *tensor.Tensor {
	return memory.Must(tensor.FromSlice(numbers, len(numbers)))
}

// RowBuffer is memory for a number of rows that changes from call to call.
type RowBuffer struct{ memory buffer }

// Rows returns rows of width elements, of undefined content. They are valid until the next call.
func (m *RowBuffer) Rows(d tensor.DType, rows, width int) *tensor.Tensor {
	return memory.Must(tensor.FromBytes(m.memory.of(rows*width*d.Size()), d, rows, width))
}

// Work is what the experts of a rank compute with: R rows of its own, or of several ranks.
type Work struct {
	Counts    []int32        // rows of each expert
	In, Out   *tensor.Tensor // [R h]
	GateUp    *tensor.Tensor // [R 2f]
	Act       *tensor.Tensor // [R f]
	DOut, DIn *tensor.Tensor // [R h], gradients
	DAct      *tensor.Tensor // [R f], a gradient
}

// WorkBuffers are the memory of Work whose number of rows changes. Layers share Scratch.
type WorkBuffers struct {
	in, gateUp, act RowBuffer
	Scratch         *[4]RowBuffer
}

// Work returns memory for some rows like those of a tensor, with f elements inside of experts.
func (m *WorkBuffers) Work(counts []int32, rows int, like *tensor.Tensor, f int) Work {
	d, h, s := like.DType(), like.Shape().Cols(), m.Scratch
	return Work{
		Counts: counts, In: m.in.Rows(d, rows, h), GateUp: m.gateUp.Rows(d, rows, 2*f), Act: m.act.Rows(d, rows, f),
		Out: s[0].Rows(d, rows, h), DOut: s[1].Rows(d, rows, h), DIn: s[2].Rows(d, rows, h), DAct: s[3].Rows(d, rows, f),
	}
}
