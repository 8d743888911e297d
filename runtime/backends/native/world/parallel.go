package world

// Parallel are the parameters of training on several ranks, with Megatron's names.
type Parallel struct {
	OverlapGradReduce bool `param:"overlap_grad_reduce"` // gradients are sent while the backward pass goes on
}
