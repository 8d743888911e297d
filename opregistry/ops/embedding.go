package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// EmbeddingFwdArgs are the arguments of EmbeddingFwd.
type EmbeddingFwdArgs struct {
	Indices *tensor.Tensor // i32 or i64, n elements, contiguous
	Weight  *tensor.Tensor // [vocab, h]
	Output  *tensor.Tensor // [.., h] with n rows
}

// EmbeddingFwd copies rows of a table:
//
//	out[i,:] = weight[indices[i],:]
//
// Indices and weight are read, out is written; all are disjoint. Any compute dtype, one for weight
// and out. An index outside [0, vocab) is an argument error, found before anything is written.
var EmbeddingFwd = opregistry.NewOp("embedding_fwd", opregistry.Schema[EmbeddingFwdArgs]{
	Doc: "rows of a table by index",
	Validate: func(a EmbeddingFwdArgs) error {
		c := check{op: "embedding_fwd"}
		c.table("weight", a.Weight, a.Indices, "output", a.Output)
		c.disjoint("output", a.Output, "weight", a.Weight)
		c.disjoint("output", a.Output, "indices", a.Indices)
		return c.err
	},
	Lead: func(a EmbeddingFwdArgs) *tensor.Tensor { return a.Weight },
	Operands: func(a EmbeddingFwdArgs) []opregistry.Operand {
		return operands{}.read("indices", a.Indices).read("weight", a.Weight).write("output", a.Output)
	},
})

// EmbeddingBwdArgs are the arguments of EmbeddingBwd.
type EmbeddingBwdArgs struct {
	Grad       *tensor.Tensor // [.., h] with n rows
	Indices    *tensor.Tensor // i32 or i64, n elements, contiguous
	DWeight    *tensor.Tensor // [vocab, h]
	Accumulate bool
}

// EmbeddingBwd adds up the rows of a gradient by index:
//
//	dweight[v,:] = Σ_{i: indices[i]=v} grad[i,:]      (+ dweight[v,:] with Accumulate)
//
// Grad and indices are read; dweight is written, or updated with Accumulate.
// Rows are added in ascending i in f32 or better, so that the result does not
// depend on the number of workers. Dtypes and indices are those of EmbeddingFwd.
var EmbeddingBwd = opregistry.NewOp("embedding_bwd", opregistry.Schema[EmbeddingBwdArgs]{
	Doc: "gradient of embedding_fwd",
	Validate: func(a EmbeddingBwdArgs) error {
		c := check{op: "embedding_bwd"}
		c.table("dweight", a.DWeight, a.Indices, "grad", a.Grad)
		c.disjoint("dweight", a.DWeight, "grad", a.Grad)
		c.disjoint("dweight", a.DWeight, "indices", a.Indices)
		return c.err
	},
	Lead: func(a EmbeddingBwdArgs) *tensor.Tensor { return a.Grad },
	Operands: func(a EmbeddingBwdArgs) []opregistry.Operand {
		o := operands{}.read("grad", a.Grad).read("indices", a.Indices)
		if a.Accumulate {
			return o.update("dweight", a.DWeight)
		}
		return o.write("dweight", a.DWeight)
	},
})

func (c *check) table(tableName string, table, indices *tensor.Tensor, rowsName string, rows *tensor.Tensor) {
	if !c.compute(tableName, table) || !c.rank(tableName, table, 2) || !c.compute(rowsName, rows) ||
		!c.minRank(rowsName, rows, 1) || !c.index("indices", indices) {
		return
	}
	c.sameDType(rowsName, rows, tableName, table)
	if rows.Shape().Cols() != table.Shape().Cols() {
		c.fail(rowsName, "rows of "+itoa(table.Shape().Cols()), "%v", rows)
	}
	c.elements("indices", indices, rows.Shape().Rows(), "one a row")
	c.labels("indices", indices, table.Shape()[0], -1, false)
}

// labels checks that every index lies in [0, limit) or is the ignored one.
func (c *check) labels(name string, t *tensor.Tensor, limit, ignore int, hasIgnore bool) {
	c.contiguous(name, t)
	if c.err != nil {
		return
	}
	bad, at := 0, -1
	if t.DType() == tensor.I32 {
		for i, v := range tensor.Data[int32](t) {
			if uint(v) >= uint(limit) && !(hasIgnore && int(v) == ignore) {
				bad, at = int(v), i
				break
			}
		}
	} else {
		for i, v := range tensor.Data[int64](t) {
			if uint64(v) >= uint64(limit) && !(hasIgnore && int(v) == ignore) {
				bad, at = int(v), i
				break
			}
		}
	}
	if at >= 0 {
		c.fail(name, "values in [0, "+itoa(limit)+")", "%d at element %d", bad, at)
	}
}
