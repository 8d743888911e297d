package main

import (
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// traffic is the number of bytes that an op must move when each operand passes once.
type traffic struct {
	read, written, updated int // updated bytes count as read and as written, too
}

// distinct returns how many bytes of memory are moved.
func (t traffic) distinct() int { return t.read + t.written - t.updated }

// trafficOf counts every operand once. Only the rows of a table that indexes point to are read, an
// operand that is read and written in place is updated, and the cases of a cache fill all of it.
func trafficOf(operands []opregistry.Operand) traffic {
	var t traffic
	picked := 0
	for _, o := range operands {
		if o.Name == "indices" {
			picked = o.Tensor.NumElements()
		}
	}
	for i, o := range operands {
		if o.Tensor == nil {
			continue
		}
		n := o.Tensor.NumElements()
		if picked > 0 && o.Name == "weight" {
			n = min(n, picked*o.Tensor.Shape().Cols())
		}
		n *= o.Tensor.DType().Size()
		switch {
		case o.Access == opregistry.AccessRead:
			t.read += n
		case o.Name == "k_cache" || o.Name == "v_cache":
			t.written += n
		case o.Access == opregistry.AccessWrite && !readToo(operands, i):
			t.written += n
		case o.Access == opregistry.AccessWrite:
			t.written += n
			t.updated += n
		default:
			t.read += n
			t.written += n
			t.updated += n
		}
	}
	return t
}

// readToo reports whether another operand reads the memory that operand i writes.
func readToo(operands []opregistry.Operand, i int) bool {
	for _, o := range operands {
		if o.Access == opregistry.AccessRead && tensor.SameView(o.Tensor, operands[i].Tensor) {
			return true
		}
	}
	return false
}

// loop only moves bytes. Its arrays are together as large as the memory that an op moves, so that
// both find it in the same cache or in none.
type loop struct {
	name        string
	arrays      [][]float32
	passes      int // over an array: reads and writes
	do          func(arrays [][]float32, lo, hi int)
	parts, size int
}

// loopPart is the number of elements of a part of a loop.
const loopPart = 1 << 14

// loopFor returns the loop that reads and writes in about the same proportion as an op: a sum for
// an op that only reads, McCalpin's STREAM scale and add, a triad in place, and a scale with two
// results.
func loopFor(t traffic) *loop {
	var l *loop
	arrays := 0
	switch {
	case t.written*16 < t.read:
		l, arrays = &loop{name: "sum", passes: 1, do: func(a [][]float32, lo, hi int) { vector.Sum(a[0][lo:hi]) }}, 1
	case t.updated*2 > t.written:
		l, arrays = &loop{name: "y += a·x", passes: 3, do: func(a [][]float32, lo, hi int) { vector.Axpy(1e-9, a[0][lo:hi], a[1][lo:hi]) }}, 2
	case 2*t.read >= 3*t.written:
		l, arrays = &loop{name: "z = x + y", passes: 3, do: func(a [][]float32, lo, hi int) { vector.Add(a[2][lo:hi], a[0][lo:hi], a[1][lo:hi]) }}, 3
	case 3*t.read > 2*t.written:
		l, arrays = &loop{name: "y = a·x", passes: 2, do: func(a [][]float32, lo, hi int) { vector.Scale(0.5, a[1][lo:hi], a[0][lo:hi]) }}, 2
	default:
		l, arrays = &loop{name: "y, z = a·x, b·x", passes: 3, do: scaleTwice}, 3
	}
	l.size = t.distinct() / 4 / arrays
	for range arrays {
		array := make([]float32, l.size)
		for i := range array {
			array[i] = 1
		}
		l.arrays = append(l.arrays, array)
	}
	l.parts = max(l.size/loopPart, 1)
	return l
}

// traffic returns how many bytes a run moves.
func (l *loop) traffic() int { return 4 * l.size * l.passes }

func (l *loop) run(pool opregistry.Pool) { pool.Run(l.parts, l) }

// Do runs a part.
func (l *loop) Do(part int) {
	lo, hi := parallel.Split(l.size, l.parts, part)
	l.do(l.arrays, lo, hi)
}

// scaleTwice reads each piece of its source from memory once.
func scaleTwice(a [][]float32, lo, hi int) {
	const piece = 1 << 10
	for ; lo < hi; lo += piece {
		end := min(lo+piece, hi)
		vector.Scale(0.5, a[1][lo:end], a[0][lo:end])
		vector.Scale(0.25, a[2][lo:end], a[0][lo:end])
	}
}
