package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Columns of the parts of a product: of one row, or of all rows if bias receives their sums.
const (
	rowColumns = 1024
	sumColumns = 4
)

// gemmParts cuts a product into blocks of columns of one row, or of all rows if bias receives the
// sums over them.
func gemmParts(a *GenericGemmArgs) opregistry.Parts[GenericGemmArgs] {
	m, n, k := a.Dims()
	rows, columns := 1, rowColumns
	if a.Grad && a.Bias != nil {
		rows, columns = m, sumColumns
	}
	columns = max(1, min(columns, n))
	across := (n + columns - 1) / columns
	return opregistry.Parts[GenericGemmArgs]{
		N: across * (m / max(1, rows)), Work: float64(rows) * float64(columns) * float64(k),
		At: func(i int) (p opregistry.Part[GenericGemmArgs], err error) {
			row, column := i/across*rows, i%across*columns
			p.Args, err = a.block(row, row+rows, column, min(column+columns, n))
			if a.Grad && a.Bias != nil && column > 0 {
				p.Results = []string{"D"} // bias is compared with the first columns
			}
			return p, err
		},
	}
}

// block returns the call that computes some rows and columns of D.
func (a *GenericGemmArgs) block(row, endRow, column, endColumn int) (GenericGemmArgs, error) {
	part := *a
	var err error
	cut := func(to **tensor.Tensor, turned bool, axis, lo, hi int) {
		if *to == nil || err != nil {
			return
		}
		t := *to
		if rank := len(t.Shape()); rank > 2 {
			if t, err = t.Reshape(t.Shape().Rows(), t.Shape().Cols()); err != nil {
				return
			}
		}
		if axis = min(axis, len(t.Shape())-1); turned {
			axis = 1 - axis
		}
		*to, err = t.Slice(axis, lo, hi)
	}
	cut(&part.A, a.TransA, 1, column, endColumn)
	cut(&part.B, a.TransB, 0, row, endRow)
	for _, to := range []**tensor.Tensor{&part.D, &part.GeluIn} {
		cut(to, false, 0, row, endRow)
		cut(to, false, 1, column, endColumn)
	}
	if !a.Grad {
		cut(&part.Bias, false, 0, column, endColumn)
	}
	return part, err
}
