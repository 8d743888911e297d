package collective

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// AllGatherArgs are the arguments of AllGather.
type AllGatherArgs struct {
	Input  *tensor.Tensor `op:"0 input read any contiguous lead"`
	Output *tensor.Tensor `op:"1 output write =input contiguous"`
	Group  `op:"2"`
}

// AllGather gives all ranks the inputs of all, one after the other.
var AllGather = opregistry.NewOp("all_gather", opregistry.Schema[AllGatherArgs]{
	Collective: true,
	Doc:        "the elements of all ranks, one after the other, for all ranks",
	Formula: `
		all_gather gives all ranks the inputs of all, one after the other:

		  output_r[q·n + i] = input_q[i]

		Arguments:

		  input   n elements
		  output  ranks·n elements

		Example:

		  input=[1 2] ranks=1 → output=[1 2]
	`,
	Check: func(c *opregistry.Check, a *AllGatherArgs) {
		a.check(c)
		c.Elements("output", a.Output, a.Ranks*a.Input.NumElements(), "those of input, of each rank")
	},
	Tolerance: copies,
})

// BroadcastArgs are the arguments of Broadcast.
type BroadcastArgs struct {
	Buffer *tensor.Tensor `op:"0 buffer depends any contiguous"`
	Root   int            `op:"1 root >=0"`
	Group  `op:"2"`
}

// Broadcast gives all ranks the elements of one rank, root.
var Broadcast = opregistry.NewOp("broadcast", opregistry.Schema[BroadcastArgs]{
	Collective: true,
	Doc:        "the elements of one rank, for all ranks",
	Formula: `
		broadcast gives all ranks the elements of one rank, root. There buffer is only read;
		elsewhere it is written.

		Example:

		  root=0 ranks=1 buffer=[1 2] → buffer=[1 2]
	`,
	Access: func(a *BroadcastArgs, _ string, _ int) opregistry.Access {
		if a.Rank == a.Root {
			return opregistry.AccessRead
		}
		return opregistry.AccessWrite
	},
	Check:     func(c *opregistry.Check, a *BroadcastArgs) { a.root(c, a.Root) },
	Tolerance: copies,
})

// AllToAllArgs are the arguments of AllToAll.
type AllToAllArgs struct {
	Input  *tensor.Tensor `op:"0 input read any contiguous lead"`
	Output *tensor.Tensor `op:"1 output write =input contiguous"`
	Group  `op:"2"`
}

// AllToAll gives each rank its part of the inputs of all ranks, one after the other.
var AllToAll = opregistry.NewOp("all_to_all", opregistry.Schema[AllToAllArgs]{
	Collective: true,
	Doc:        "the parts for this rank of the elements of all ranks, one after the other",
	Formula: `
		all_to_all gives each rank its part of the inputs of all ranks, one after the other:

		  output_r[q·n + i] = input_q[r·n + i]

		Arguments:

		  input   ranks·n elements
		  output  as many

		Example:

		  input=[1 2] ranks=1 → output=[1 2]
	`,
	Check: func(c *opregistry.Check, a *AllToAllArgs) {
		a.check(c)
		if c.OK() && a.Input.NumElements()%a.Ranks != 0 {
			c.Fail("input", "a multiple of ranks elements", "%v and %d ranks", a.Input, a.Ranks)
		}
		c.Elements("output", a.Output, a.Input.NumElements(), "as many as input")
	},
	Tolerance: copies,
})

// BarrierArgs are the arguments of Barrier.
type BarrierArgs struct {
	Group `op:"0"`
}

// Barrier returns when all ranks have called it.
var Barrier = opregistry.NewOp("barrier", opregistry.Schema[BarrierArgs]{
	Collective: true,
	Doc:        "waits for all ranks",
	Formula: `
		barrier returns when all ranks have called it.

		Example:

		  ranks=1 →
	`,
	Check:     func(c *opregistry.Check, a *BarrierArgs) { a.check(c) },
	Tolerance: copies,
})

var copies = opregistry.Exact("a copy")
