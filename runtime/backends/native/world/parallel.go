package world

// Parallel are the parameters of training on several ranks, with Megatron's names.
type Parallel struct {
	OverlapGradReduce bool `param:"overlap_grad_reduce"` // gradients are sent while the backward pass goes on

	// DistributedTimeout is how many minutes a rank waits for the others in a collective; 0 means 10.
	DistributedTimeout float64 `param:"distributed_timeout_minutes"`
}
