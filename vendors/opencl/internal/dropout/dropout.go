package dropout

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/internal/rows"
)

//go:embed dropout.cl
var source string

var program = rows.NewProgram("dropout", kernel.WithPhilox(source), []string{"X"}, nil)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		kernel.Impl(dropout.DropoutFwd, forward, kernel.Storage),
		kernel.Impl(dropout.DropoutBwd, backward, kernel.Storage),
	}
}

func forward(e *opregistry.Exec, a dropout.DropoutFwdArgs) error {
	c := rows.Begin(e)
	c.Vector("input", a.Input)
	c.Vector("out", a.Out)
	c.Numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	n := a.Input.NumElements()
	limit := uint32(float64(a.DropoutProbability) * (1 << 32))
	l := c.Kernel(program, "dropout_fwd", rows.Types{a.Input.DType()}, 0).Vec(a.Input, a.Out, a.Mask).U64(uint64(n))
	return blocks(l, n).F32(scale(a.DropoutProbability)).U32(int(limit)).U64(a.Seed, a.Offset).Run()
}

func backward(e *opregistry.Exec, a dropout.DropoutBwdArgs) error {
	c := rows.Begin(e)
	c.Vector("grad_output", a.GradOutput)
	c.Vector("grad_input", a.GradInput)
	c.Numbers("mask", a.Mask, tensor.U8)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(program, "dropout_bwd", rows.Types{a.GradOutput.DType()}, 0).Vec(a.GradOutput, a.Mask, a.GradInput)
	n := a.GradOutput.NumElements()
	return blocks(l.U64(uint64(n)), n).F32(scale(a.DropoutProbability)).Run()
}

// scale is the factor of the elements that are kept.
func scale(p float32) float32 { return float32(1 / (1 - float64(p))) }

// blocks adds the argument per for the BLOCKs of n elements.
func blocks(l *rows.Launch, n int) *rows.Launch {
	size := 4 * l.Width()
	return l.Items(rows.CeilDiv(n, size), size)
}
