package reference

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// collectiveID is the id of the impls of collectives.
const collectiveID = "reference.local"

// collectives returns the impls of collectives.
func collectives() []opregistry.Impl {
	return []opregistry.Impl{
		alone(collective.AllReduce,
			func(a collective.AllReduceArgs) collective.Group { return a.Group },
			func(a collective.AllReduceArgs) error { return same(a.Output, a.Input) }),
		alone(collective.Reduce,
			func(a collective.ReduceArgs) collective.Group { return a.Group },
			func(a collective.ReduceArgs) error { return same(a.Output, a.Input) }),
		alone(collective.ReduceScatter,
			func(a collective.ReduceScatterArgs) collective.Group { return a.Group },
			func(a collective.ReduceScatterArgs) error { return same(a.Output, a.Input) }),
		alone(collective.AllGather,
			func(a collective.AllGatherArgs) collective.Group { return a.Group },
			func(a collective.AllGatherArgs) error { return same(a.Output, a.Input) }),
		alone(collective.Broadcast,
			func(a collective.BroadcastArgs) collective.Group { return a.Group },
			func(collective.BroadcastArgs) error { return nil }),
		alone(collective.AllToAll,
			func(a collective.AllToAllArgs) collective.Group { return a.Group },
			func(a collective.AllToAllArgs) error { return same(a.Output, a.Input) }),
		alone(collective.Barrier,
			func(a collective.BarrierArgs) collective.Group { return a.Group },
			func(collective.BarrierArgs) error { return nil }),
	}
}

// alone makes an impl that serves jobs of one rank.
func alone[A any](op *opregistry.Op[A], group func(A) collective.Group, run func(A) error) opregistry.Impl {
	i := impl(op, run)
	i.ID, i.Determinism = collectiveID, opregistry.DeterminismEverywhere
	i.Support.Call = func(a A) error {
		if n := group(a).Ranks; n != 1 {
			return opregistry.Unsupported("%d ranks: it serves a job of one", n)
		}
		return nil
	}
	return i
}

// same copies elements to a tensor of as many, whatever the axes of the two are.
func same(output, input *tensor.Tensor) error {
	flat, err := input.Reshape(output.Shape()...)
	if err != nil {
		return err
	}
	return output.CopyFrom(flat)
}
