package blas

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// partElements is the work of one part in elements: enough to hide the cost of handing it out, and
// independent of the number of workers.
const partElements = 1 << 15

// baseTask computes d = bias + beta·d for each row of d; the product is then added to it. d is not
// read when beta is 0.
type baseTask struct {
	d    matrix
	bias matrix // of one row; its address is nil for a bias of 0
	beta float32
	rows int // of a part
}

func (b *baseTask) run(pool opregistry.Pool, d, bias matrix, beta float32) {
	*b = baseTask{d: d, bias: bias, beta: beta, rows: max(1, partElements/d.cols)}
	pool.Run((d.rows+b.rows-1)/b.rows, b)
	*b = baseTask{}
}

// Do computes the rows of a part.
func (b *baseTask) Do(part int) {
	for i := part * b.rows; i < min((part+1)*b.rows, b.d.rows); i++ {
		if b.d.dtype == tensor.F64 {
			baseRow[float64](b, i)
		} else {
			baseRow[float32](b, i)
		}
	}
}

func baseRow[T float32 | float64](b *baseTask, i int) {
	row := rowOf[T](&b.d, i, 0, b.d.cols)
	switch {
	case b.beta != 0 && b.bias.first != nil:
		for j, v := range rowOf[T](&b.bias, 0, 0, b.d.cols) {
			row[j] = T(b.beta)*row[j] + v
		}
	case b.beta != 0:
		for j := range row {
			row[j] *= T(b.beta)
		}
	case b.bias.first != nil:
		copy(row, rowOf[T](&b.bias, 0, 0, b.d.cols))
	default:
		clear(row)
	}
}

// sumCols and sumRows are the size of a block of a sum: columns are independent, rows are added in
// f32 within a block and in f64 across blocks.
const (
	sumCols = 256
	sumRows = 64
)

// sumTask computes out[j] = Σ_i m[i,j].
type sumTask struct{ m, out matrix }

func (s *sumTask) run(pool opregistry.Pool, m, out matrix) {
	*s = sumTask{m: m, out: out}
	pool.Run((m.cols+sumCols-1)/sumCols, s)
	*s = sumTask{}
}

// Do computes the columns of a part.
func (s *sumTask) Do(part int) {
	lo := part * sumCols
	hi := min(lo+sumCols, s.m.cols)
	if s.m.dtype == tensor.F64 {
		s.doF64(lo, hi)
		return
	}
	var total [sumCols]float64
	for begin := 0; begin < s.m.rows; begin += sumRows {
		var block [sumCols]float32
		for i := begin; i < min(begin+sumRows, s.m.rows); i++ {
			if s.m.dtype == tensor.BF16 {
				for j, v := range rowOf[tensor.BFloat16](&s.m, i, lo, hi) {
					block[j] += v.Float32()
				}
				continue
			}
			for j, v := range rowOf[float32](&s.m, i, lo, hi) {
				block[j] += v
			}
		}
		for j := range hi - lo {
			total[j] += float64(block[j])
		}
	}
	for j, out := 0, rowOf[float32](&s.out, 0, lo, hi); j < len(out); j++ {
		out[j] = float32(total[j])
	}
}

func (s *sumTask) doF64(lo, hi int) {
	out := rowOf[float64](&s.out, 0, lo, hi)
	clear(out)
	for i := range s.m.rows {
		for j, v := range rowOf[float64](&s.m, i, lo, hi) {
			out[j] += v
		}
	}
}

var (
	_ opregistry.Task = (*baseTask)(nil)
	_ opregistry.Task = (*sumTask)(nil)
)
