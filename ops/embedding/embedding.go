package embedding

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
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
		c := check.Call{Op: "embedding_fwd"}
		table(&c, "weight", a.Weight, a.Indices, "output", a.Output)
		c.Disjoint("output", a.Output, "weight", a.Weight)
		c.Disjoint("output", a.Output, "indices", a.Indices)
		return c.Err
	},
	Lead: func(a EmbeddingFwdArgs) *tensor.Tensor { return a.Weight },
	Operands: func(a EmbeddingFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("indices", a.Indices).Read("weight", a.Weight).Write("output", a.Output)
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
		c := check.Call{Op: "embedding_bwd"}
		table(&c, "dweight", a.DWeight, a.Indices, "grad", a.Grad)
		c.Disjoint("dweight", a.DWeight, "grad", a.Grad)
		c.Disjoint("dweight", a.DWeight, "indices", a.Indices)
		return c.Err
	},
	Lead: func(a EmbeddingBwdArgs) *tensor.Tensor { return a.Grad },
	Operands: func(a EmbeddingBwdArgs) []opregistry.Operand {
		o := check.Operands{}.Read("grad", a.Grad).Read("indices", a.Indices)
		if a.Accumulate {
			return o.Update("dweight", a.DWeight)
		}
		return o.Write("dweight", a.DWeight)
	},
})

func table(c *check.Call, tableName string, table, indices *tensor.Tensor, rowsName string, rows *tensor.Tensor) {
	if !c.Compute(tableName, table) || !c.Rank(tableName, table, 2) || !c.Compute(rowsName, rows) ||
		!c.MinRank(rowsName, rows, 1) || !c.Index("indices", indices) {
		return
	}
	c.SameDType(rowsName, rows, tableName, table)
	if rows.Shape().Cols() != table.Shape().Cols() {
		c.Fail(rowsName, "rows of "+check.Itoa(table.Shape().Cols()), "%v", rows)
	}
	c.Elements("indices", indices, rows.Shape().Rows(), "one a row")
	Labels(c, "indices", indices, table.Shape()[0], -1, false)
}

// Labels checks that every index lies in [0, limit) or is the ignored one.
func Labels(c *check.Call, name string, t *tensor.Tensor, limit, ignore int, hasIgnore bool) {
	c.Contiguous(name, t)
	if c.Err != nil {
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
		c.Fail(name, "values in [0, "+check.Itoa(limit)+")", "%d at element %d", bad, at)
	}
}
