package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

//go:embed loss.cl
var lossSource string

var lossProgram = NewProgram("loss", lossSource, []string{"X"}, IndexFlags)

// lossImpls returns the impls of the family.
func lossImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(loss.CrossEntropyFwd, lossForward, Storage),
		Impl(loss.CrossEntropyBwd, lossBackward, Storage),
	}
}

func lossForward(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	c := Begin(e)
	x, index := c.Rows("logits", a.Logits), c.Index("targets", a.Targets)
	c.Numbers("losses", a.Losses, tensor.F32)
	c.Numbers("lse", a.LSE, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(lossProgram, "loss_fwd", Types{a.Logits.DType()}, index).Mat(x).Vec(a.Targets, a.Losses, a.LSE)
	return l.Rows(x.Rows, x.Cols).U64(uint64(a.IgnoreIndex)).Run()
}

func lossBackward(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	c := Begin(e)
	x, dx, index := c.Rows("logits", a.Logits), c.Rows("dlogits", a.DLogits), c.Index("targets", a.Targets)
	c.Numbers("lse", a.LSE, tensor.F32)
	c.Numbers("dlosses", a.DLosses, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(lossProgram, "loss_bwd", Types{a.Logits.DType()}, index).Mat(x, dx).Vec(a.Targets, a.LSE, a.DLosses)
	return l.Rows(x.Rows, x.Cols).U64(uint64(a.IgnoreIndex)).Run()
}
