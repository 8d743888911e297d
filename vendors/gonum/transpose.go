package gonum

import (
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
)

// transposeSize is the side of the squares into which a matrix is cut to transpose it.
const transposeSize = 32

// transpose is a task that writes the transpose of a matrix.
type transpose[T float32 | float64] struct {
	from, to   []T
	rows, cols int // of from
	ld         int // of from; to is contiguous
}

// run writes the transpose of a rows×cols matrix to scratch memory, which the caller must release.
func (t *transpose[T]) run(x *opregistry.Exec, from []T, rows, cols, ld int) []float32 {
	var element T
	scratch := x.Scratch(rows * cols * int(unsafe.Sizeof(element)/4))
	to := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(scratch))), rows*cols)
	*t = transpose[T]{from, to, rows, cols, ld}
	x.Pool().Run(blocks(cols, transposeSize), t)
	*t = transpose[T]{}
	return scratch
}

// Do writes the rows of the transpose that come from a few columns.
func (t *transpose[T]) Do(part int) {
	begin := part * transposeSize
	end := min(begin+transposeSize, t.cols)
	for top := 0; top < t.rows; top += transposeSize {
		for j := begin; j < end; j++ {
			row := t.to[j*t.rows:]
			for i := top; i < min(top+transposeSize, t.rows); i++ {
				row[i] = t.from[i*t.ld+j]
			}
		}
	}
}

var _ opregistry.Task = (*transpose[float32])(nil)
