package loss

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/internal/rows"
)

//go:embed loss.cl
var source string

var program = rows.NewProgram("loss", source, []string{"X"}, rows.IndexFlags)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		kernel.Impl(loss.CrossEntropyFwd, forward, kernel.Storage),
		kernel.Impl(loss.CrossEntropyBwd, backward, kernel.Storage),
	}
}

func forward(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	c := rows.Begin(e)
	x, index := c.Rows("logits", a.Logits), c.Index("targets", a.Targets)
	c.Numbers("losses", a.Losses, tensor.F32)
	c.Numbers("lse", a.LSE, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(program, "loss_fwd", rows.Types{a.Logits.DType()}, index).Mat(x).Vec(a.Targets, a.Losses, a.LSE)
	return l.Rows(x.Rows, x.Cols).U64(uint64(a.IgnoreIndex)).Run()
}

func backward(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	c := rows.Begin(e)
	x, dx, index := c.Rows("logits", a.Logits), c.Rows("dlogits", a.DLogits), c.Index("targets", a.Targets)
	c.Numbers("lse", a.LSE, tensor.F32)
	c.Numbers("dlosses", a.DLosses, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(program, "loss_bwd", rows.Types{a.Logits.DType()}, index).Mat(x, dx).Vec(a.Targets, a.LSE, a.DLosses)
	return l.Rows(x.Rows, x.Cols).U64(uint64(a.IgnoreIndex)).Run()
}
