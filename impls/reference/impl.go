package reference

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
)

// impl makes an Impl from a function that needs only the arguments of a call.
func impl[A any](op *opregistry.Op[A], run func(A) error) opregistry.Impl {
	return opregistry.Impl{
		Op: op,
		// The bits are equal on one class of CPU only, because math.Exp and similar functions use
		// FMA where the CPU has it.
		Determinism: opregistry.DeterminismOfClass,
		Run: func(_ *opregistry.Exec, a A) error {
			for _, o := range op.Operands(a) {
				if d := o.Tensor.Device(); d.Type != device.TypeCPU {
					return opregistry.Unsupported("operand %q lies on %v, the reference reads host memory only", o.Name, d)
				}
			}
			return run(a)
		},
	}
}
