package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
)

// lossImpls returns the impls of the family.
func lossImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(loss.CrossEntropyFwd, crossEntropyFwd),
		host.Impl(loss.CrossEntropyBwd, crossEntropyBwd),
	}
}

type entropy struct {
	host.Cut
	exec        *opregistry.Exec
	logits      host.Matrix
	targets     host.Indexes
	losses, lse []float32
	ignore      int
}

var entropyKernel = parallel.NewKernel((*entropy).part)

// crossEntropyFwd implements loss.CrossEntropyFwd. A row with +Inf and no NaN has the log-sum-exp
// +Inf, and one with only −Inf has −Inf.
func crossEntropyFwd(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	var v host.Views
	c := entropy{
		exec:    e,
		logits:  v.Matrix("logits", a.Logits),
		targets: v.Indexes("targets", a.Targets),
		losses:  v.Vector("losses", a.Losses),
		lse:     v.Vector("lse", a.LSE),
		ignore:  a.IgnoreIndex,
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.logits.Rows, c.logits.Cols)
	host.KernelFor(entropyKernel, entropyTiles, c.logits).Run(e.Pool(), c.Parts, c)
	return nil
}

// entropyRows is how many rows are processed together.
const entropyRows = 32

func (c *entropy) part(part int) {
	lo, hi := c.Bounds(part)
	for ; lo < hi; lo += entropyRows {
		c.block(lo, min(lo+entropyRows, hi))
	}
}

// block computes at most entropyRows rows.
func (c *entropy) block(lo, hi int) {
	var logs [entropyRows]float64
	vector.LogSumExp(logs[:hi-lo], c.logits.Data[lo*c.logits.Pitch:], c.logits.Cols, c.logits.Pitch)
	for r := lo; r < hi; r++ {
		lse := logs[r-lo]
		c.lse[r] = float32(lse)
		c.losses[r] = 0
		if target := c.targets.At(r); target != c.ignore {
			c.losses[r] = float32(max(lse-float64(c.logits.Row(r)[target]), 0)) // rounding must not make it negative
		}
	}
}

type entropyGrad struct {
	host.Cut
	exec            *opregistry.Exec
	logits, dlogits host.Matrix
	targets         host.Indexes
	lse, dlosses    []float32
	ignore          int
}

var entropyGradKernel = parallel.NewKernel((*entropyGrad).part)

// crossEntropyBwd implements loss.CrossEntropyBwd.
func crossEntropyBwd(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	var v host.Views
	c := entropyGrad{
		exec:    e,
		logits:  v.Matrix("logits", a.Logits),
		dlogits: v.Matrix("dlogits", a.DLogits),
		targets: v.Indexes("targets", a.Targets),
		lse:     v.Vector("lse", a.LSE),
		dlosses: v.Vector("dlosses", a.DLosses),
		ignore:  a.IgnoreIndex,
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.logits.Rows, c.logits.Cols)
	host.KernelFor(entropyGradKernel, entropyGradTiles, c.logits, c.dlogits).Run(e.Pool(), c.Parts, c)
	return nil
}

// logHalf is ln ½.
const logHalf = -math.Ln2

func (c *entropyGrad) part(part int) {
	lo, hi := c.Bounds(part)
	for r := lo; r < hi; r++ {
		x, dx, target := c.logits.Row(r), c.dlogits.Row(r), c.targets.At(r)
		if target == c.ignore {
			clear(dx)
			continue
		}
		lse, dloss := c.lse[r], c.dlosses[r]
		log := float64(x[target]) - float64(lse)
		vector.ExpScale(dx, x, lse, dloss)
		if log > logHalf {
			// p−1 has lost digits where p is close to 1.
			dx[target] = float32(float64(dloss) * math.Expm1(log))
		} else {
			dx[target] -= dloss
		}
	}
}
