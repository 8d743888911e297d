package embedding

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// EmbeddingFwdArgs are the arguments of EmbeddingFwd.
type EmbeddingFwdArgs struct {
	Indices *tensor.Tensor `op:"0 indices read index (rows) contiguous"`
	Weight  *tensor.Tensor `op:"1 weight read compute [vocab h] lead"`
	Output  *tensor.Tensor `op:"2 output write =weight [.. h]"`
}

// EmbeddingFwd copies rows of a table.
var EmbeddingFwd = opregistry.NewOp("embedding_fwd", opregistry.Schema[EmbeddingFwdArgs]{
	Doc: "rows of a table by index",
	Formula: `
		embedding_fwd copies rows of a table:

		  out[i,:] = weight[indices[i],:]

		An index outside [0, vocab) is an argument error, found before anything is written.

		Example:

		  indices=i32[2 0 2] weight=[[1 2] [3 4] [5 6]] → output=[[5 6] [1 2] [5 6]]
	`,
	Check: func(c *opregistry.Check, a *EmbeddingFwdArgs) {
		check.Labels(c, "indices", a.Indices, a.Weight.Shape()[0], -1, false)
	},
	Tolerance: opregistry.Exact("a copy"),
})

// EmbeddingBwdArgs are the arguments of EmbeddingBwd.
type EmbeddingBwdArgs struct {
	Grad       *tensor.Tensor `op:"0 grad read compute [.. h]"`
	Indices    *tensor.Tensor `op:"1 indices read index (rows) contiguous"`
	DWeight    *tensor.Tensor `op:"2 dweight write|update:accumulate compute [vocab h]"`
	Accumulate bool           `op:"3 accumulate"`
}

// EmbeddingBwd adds up the rows of a gradient by index.
var EmbeddingBwd = opregistry.NewOp("embedding_bwd", opregistry.Schema[EmbeddingBwdArgs]{
	Doc: "gradient of embedding_fwd",
	Formula: `
		embedding_bwd adds up the rows of a gradient by index:

		  dweight[v,:] = Σ_{i: indices[i]=v} grad[i,:]      (+ dweight[v,:] with accumulate)

		Rows are added in ascending i in f32 or better, so that the result does not depend on the
		number of workers. dweight may have another compute dtype than grad, such as f32 where
		gradients of many batches are added up. An index outside [0, vocab) is an argument error.

		Example:

		  grad=[[1 2] [3 4] [5 6]] indices=i32[2 0 2] → dweight=[[3 4] [0 0] [6 8]]
	`,
	Check: func(c *opregistry.Check, a *EmbeddingBwdArgs) {
		check.Labels(c, "indices", a.Indices, a.DWeight.Shape()[0], -1, false)
	},
	Tolerance: opregistry.Arithmetic(2e-5, 1e-5, "sums of up to 600 rows, partial sums near 15"),
})
