package world

import (
	"errors"
)

// Parallel are the parameters of training on several ranks, with Megatron's names.
type Parallel struct {
	OverlapGradReduce bool `param:"overlap_grad_reduce"`       // gradients are sent while the backward pass goes on
	Sharded           bool `param:"use_distributed_optimizer"` // each rank has the state of the optimizer for a part of the weights
	OverlapGather     bool `param:"overlap_param_gather"`      // updated weights are sent while the next forward pass goes on

	// DistributedTimeout is how many minutes a rank waits for the others in a collective; 0 means 10.
	DistributedTimeout float64 `param:"distributed_timeout_minutes"`
}

// Validate returns every fault of the configuration.
func (p Parallel) Validate() error {
	if p.OverlapGather && !(p.Sharded && p.OverlapGradReduce) {
		return errors.New("overlap_param_gather: got true, want false without use_distributed_optimizer and overlap_grad_reduce, as in Megatron")
	}
	return nil
}
