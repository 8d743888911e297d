package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
)

//go:embed dropout.cl
var dropoutSource string

var dropoutProgram = newProgram("dropout", withPhilox(dropoutSource), []string{"X"}, nil)

// dropoutImpls returns the impls of the family.
func dropoutImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(dropout.DropoutFwd, forward, Storage),
		openclImpl(dropout.DropoutBwd, backward, Storage),
	}
}

func forward(e *opregistry.Exec, a dropout.DropoutFwdArgs) error {
	c := begin(e)
	c.vector("input", a.Input)
	c.vector("out", a.Out)
	c.numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	n := a.Input.NumElements()
	limit := uint32(float64(a.DropoutProbability) * (1 << 32))
	l := c.kernel(dropoutProgram, "dropout_fwd", typeList{a.Input.DType()}, 0).vec(a.Input, a.Out, a.Mask).u64(uint64(n))
	return blocks(l, n).f32(scale(a.DropoutProbability)).u32(int(limit)).u64(a.Seed, a.Offset).Run()
}

func backward(e *opregistry.Exec, a dropout.DropoutBwdArgs) error {
	c := begin(e)
	c.vector("grad_output", a.GradOutput)
	c.vector("grad_input", a.GradInput)
	c.numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(dropoutProgram, "dropout_bwd", typeList{a.GradOutput.DType()}, 0).vec(a.GradOutput, a.Mask, a.GradInput)
	n := a.GradOutput.NumElements()
	return blocks(l.u64(uint64(n)), n).f32(scale(a.DropoutProbability)).Run()
}

// scale is the factor of the elements that are kept.
func scale(p float32) float32 { return float32(1 / (1 - float64(p))) }

// blocks adds the argument per for the BLOCKs of n elements.
func blocks(l *kernelLaunch, n int) *kernelLaunch {
	size := 4 * l.width()
	return l.items(ceilDiv(n, size), size)
}
