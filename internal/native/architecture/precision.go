package architecture

import (
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/tensor"
)

// Precision are the parameters of the types of numbers, with Megatron's names. With BF16 or FP16,
// activations, their gradients and the copies of matrices that products read have 16 bits. Weights
// that are trained, their gradients, and sums and statistics inside of ops are f32 always.
type Precision struct {
	BF16 bool `param:"bf16"`
	FP16 bool `param:"fp16"`
	fp8.Params
}

// Compute returns the type of activations.
func (p Precision) Compute() tensor.DType {
	switch {
	case p.BF16:
		return tensor.BF16
	case p.FP16:
		return tensor.F16
	default:
		return tensor.F32
	}
}
