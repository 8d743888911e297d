package collective

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// AllReduceArgs are the arguments of AllReduce.
type AllReduceArgs struct {
	Input     *tensor.Tensor `op:"0 input read f32 f64 bf16 f16 i32 i64 contiguous [..]"`
	Output    *tensor.Tensor `op:"1 output write =input contiguous [..] may=input"`
	Reduction Reduction      `op:"2 reduction"`
	Group     `op:"3"`
}

// AllReduce reduces the inputs of all ranks element by element and gives the result to all.
var AllReduce = opregistry.NewOp("all_reduce", opregistry.Schema[AllReduceArgs]{
	Collective: true,
	Doc:        "the elements of all ranks reduced, for all ranks",
	Formula: `
		all_reduce reduces the inputs of all ranks element by element and gives the result to all:

		  output_r[i] = reduction over all ranks q of input_q[i]

		With reduction avg, for floats only, the sum is divided by the number of ranks. The order of
		the sum is that of the impl. The ranks of a call are first, first + stride, … of the job, or
		all of the job with a stride of 0; every one of them makes the call.

		Arguments:

		  rank    of this process among the ranks of the call
		  ranks   their number
		  first   the rank in the job of the first of them
		  stride  the distance of their ranks in the job; 0 for all ranks of the job

		Example:

		  input=[1 2] reduction=avg ranks=1 → output=[1 2]
	`,
	Check: func(c *opregistry.Check, a *AllReduceArgs) {
		a.check(c)
		reduction(c, a.Reduction, a.Input)
	},
	Tolerance: sums,
})

// ReduceArgs are the arguments of Reduce.
type ReduceArgs struct {
	Input     *tensor.Tensor `op:"0 input read f32 f64 bf16 f16 i32 i64 contiguous [..]"`
	Output    *tensor.Tensor `op:"1 output write =input contiguous [..] ? may=input"`
	Reduction Reduction      `op:"2 reduction"`
	Root      int            `op:"3 root >=0"`
	Group     `op:"4"`
}

// Reduce reduces the inputs of all ranks as AllReduce does and gives the result to one rank, root.
var Reduce = opregistry.NewOp("reduce", opregistry.Schema[ReduceArgs]{
	Collective: true,
	Doc:        "the elements of all ranks reduced, for one rank",
	Formula: `
		reduce reduces the inputs of all ranks as all_reduce does and gives the result to one rank,
		root. Other ranks have no output.

		Arguments:

		  output  nil where rank is not root

		Example:

		  input=[1 2] root=0 rank=0 ranks=1 → output=[1 2]
	`,
	Check: func(c *opregistry.Check, a *ReduceArgs) {
		a.root(c, a.Root)
		reduction(c, a.Reduction, a.Input)
		if a.Rank == a.Root {
			c.Given("output", a.Output)
		} else {
			c.Absent("output", a.Output, "where rank is not root")
		}
	},
	Tolerance: sums,
})

// ReduceScatterArgs are the arguments of ReduceScatter.
type ReduceScatterArgs struct {
	Input     *tensor.Tensor `op:"0 input read f32 f64 bf16 f16 i32 i64 contiguous lead"`
	Output    *tensor.Tensor `op:"1 output write =input contiguous"`
	Reduction Reduction      `op:"2 reduction"`
	Group     `op:"3"`
}

// ReduceScatter reduces the inputs of all ranks element by element and gives each rank its part of
// the result, the elements rank·n to (rank+1)·n − 1.
var ReduceScatter = opregistry.NewOp("reduce_scatter", opregistry.Schema[ReduceScatterArgs]{
	Collective: true,
	Doc:        "the elements of all ranks reduced, a part for each rank",
	Formula: `
		reduce_scatter reduces the inputs of all ranks element by element and gives each rank its
		part of the result, the elements rank·n to (rank+1)·n − 1:

		  output_r[i] = reduction over all ranks q of input_q[r·n + i]

		Arguments:

		  input   ranks·n elements
		  output  n elements

		Example:

		  input=[1 2] ranks=1 → output=[1 2]
	`,
	Check: func(c *opregistry.Check, a *ReduceScatterArgs) {
		a.check(c)
		c.Elements("input", a.Input, a.Ranks*a.Output.NumElements(), "those of output, for each rank")
		reduction(c, a.Reduction, a.Input)
	},
	Tolerance: sums,
})

// reduction checks that a reduction is one for the dtype of its input.
func reduction(c *opregistry.Check, r Reduction, input *tensor.Tensor) {
	switch {
	case !c.OK():
	case r < Sum || r > Avg:
		c.Fail("reduction", "0 (sum), 1 (max), 2 (min) or 3 (avg)", "%d", int(r))
	case r == Avg && !input.DType().IsFloat():
		c.Fail("reduction", "sum, max or min of integers", "%v of %v", r, input.DType())
	}
}

var sums = opregistry.Tolerance{
	Wide:   tensor.Tolerance{Abs: 0x1p-22, Rel: 0x1p-22},
	Narrow: tensor.Tolerance{ULP: 1},
	Reason: "a sum of a number for each rank, in the order of the impl",
}
