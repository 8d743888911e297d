package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

//go:embed loss.cl
var lossSource string

var lossProgram = newProgram("loss", lossSource, []string{"X"}, indexFlags)

// lossImpls returns the impls of the family.
func lossImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(loss.CrossEntropyFwd, lossForward, Storage),
		openclImpl(loss.CrossEntropyBwd, lossBackward, Storage),
	}
}

func lossForward(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	c := begin(e)
	x, index := c.rows("logits", a.Logits), c.index("targets", a.Targets)
	c.numbers("losses", a.Losses, tensor.F32)
	c.numbers("lse", a.LSE, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(lossProgram, "loss_fwd", typeList{a.Logits.DType()}, index).mat(x).vec(a.Targets, a.Losses, a.LSE)
	return l.groupRows(x.Rows, x.Cols).u64(uint64(a.IgnoreIndex)).Run()
}

func lossBackward(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	c := begin(e)
	x, dx, index := c.rows("logits", a.Logits), c.rows("dlogits", a.DLogits), c.index("targets", a.Targets)
	c.numbers("lse", a.LSE, tensor.F32)
	c.numbers("dlosses", a.DLosses, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(lossProgram, "loss_bwd", typeList{a.Logits.DType()}, index).mat(x, dx).vec(a.Targets, a.LSE, a.DLosses)
	return l.groupRows(x.Rows, x.Cols).u64(uint64(a.IgnoreIndex)).Run()
}
