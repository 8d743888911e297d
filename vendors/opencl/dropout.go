package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
)

//go:embed dropout.cl
var dropoutSource string

var dropoutProgram = NewProgram("dropout", WithPhilox(dropoutSource), []string{"X"}, nil)

// dropoutImpls returns the impls of the family.
func dropoutImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(dropout.DropoutFwd, forward, Storage),
		Impl(dropout.DropoutBwd, backward, Storage),
	}
}

func forward(e *opregistry.Exec, a dropout.DropoutFwdArgs) error {
	c := Begin(e)
	c.Vector("input", a.Input)
	c.Vector("out", a.Out)
	c.Numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	n := a.Input.NumElements()
	limit := uint32(float64(a.DropoutProbability) * (1 << 32))
	l := c.Kernel(dropoutProgram, "dropout_fwd", Types{a.Input.DType()}, 0).Vec(a.Input, a.Out, a.Mask).U64(uint64(n))
	return blocks(l, n).F32(scale(a.DropoutProbability)).U32(int(limit)).U64(a.Seed, a.Offset).Run()
}

func backward(e *opregistry.Exec, a dropout.DropoutBwdArgs) error {
	c := Begin(e)
	c.Vector("grad_output", a.GradOutput)
	c.Vector("grad_input", a.GradInput)
	c.Numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(dropoutProgram, "dropout_bwd", Types{a.GradOutput.DType()}, 0).Vec(a.GradOutput, a.Mask, a.GradInput)
	n := a.GradOutput.NumElements()
	return blocks(l.U64(uint64(n)), n).F32(scale(a.DropoutProbability)).Run()
}

// scale is the factor of the elements that are kept.
func scale(p float32) float32 { return float32(1 / (1 - float64(p))) }

// blocks adds the argument per for the BLOCKs of n elements.
func blocks(l *Launch, n int) *Launch {
	size := 4 * l.Width()
	return l.Items(CeilDiv(n, size), size)
}
