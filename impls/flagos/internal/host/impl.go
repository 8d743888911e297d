package host

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Impl returns the impl of an op for f32, bf16 and f16. The source of all impls adds what they have
// in common.
func Impl[A any](op *opregistry.Op[A], run opregistry.Func[A]) opregistry.Impl {
	return opregistry.Impl{
		Op: op, Run: run,
		Support:     opregistry.Support{DTypes: []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}},
		Determinism: opregistry.DeterminismOfClass,
	}
}

// WithBytes lets an impl also serve calls whose lead operand is of u8 or fp8.
func WithBytes(i opregistry.Impl) opregistry.Impl {
	i.Support.DTypes = append(i.Support.DTypes, tensor.U8, tensor.F8E4M3, tensor.F8E5M2)
	return i
}

// WithAny lets an impl serve calls whose lead operand is of any dtype.
func WithAny(i opregistry.Impl) opregistry.Impl {
	i.Support.DTypes = nil
	return i
}
