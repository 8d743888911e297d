package flagos

import (
	"math"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
)

type entropy struct {
	cut
	exec        *opregistry.Exec
	logits      matrix
	targets     indexes
	losses, lse []float32
	ignore      int
}

var entropyKernel = parallel.NewKernel((*entropy).part)

// crossEntropyFwd implements loss.CrossEntropyFwd. A row with +Inf and no NaN has the log-sum-exp
// +Inf, and one with only −Inf has −Inf.
func crossEntropyFwd(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	var v views
	c := entropy{
		exec:    e,
		logits:  v.matrix("logits", a.Logits),
		targets: v.indexes("targets", a.Targets),
		losses:  v.vector("losses", a.Losses),
		lse:     v.vector("lse", a.LSE),
		ignore:  a.IgnoreIndex,
	}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.logits.rows, c.logits.cols)
	kernelFor(entropyKernel, entropyTiles, c.logits).Run(e.Pool(), c.parts, c)
	return nil
}

// entropyRows is how many rows are processed together.
const entropyRows = 32

func (c *entropy) part(part int) {
	lo, hi := c.bounds(part)
	for ; lo < hi; lo += entropyRows {
		c.block(lo, min(lo+entropyRows, hi))
	}
}

// block computes at most entropyRows rows.
func (c *entropy) block(lo, hi int) {
	var logs [entropyRows]float64
	vector.LogSumExp(logs[:hi-lo], c.logits.data[lo*c.logits.pitch:], c.logits.cols, c.logits.pitch)
	for r := lo; r < hi; r++ {
		lse := logs[r-lo]
		c.lse[r] = float32(lse)
		c.losses[r] = 0
		if target := c.targets.at(r); target != c.ignore {
			c.losses[r] = float32(max(lse-float64(c.logits.row(r)[target]), 0)) // rounding must not make it negative
		}
	}
}

type entropyGrad struct {
	cut
	exec            *opregistry.Exec
	logits, dlogits matrix
	targets         indexes
	lse, dlosses    []float32
	ignore          int
}

var entropyGradKernel = parallel.NewKernel((*entropyGrad).part)

// crossEntropyBwd implements loss.CrossEntropyBwd.
func crossEntropyBwd(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	var v views
	c := entropyGrad{
		exec:    e,
		logits:  v.matrix("logits", a.Logits),
		dlogits: v.matrix("dlogits", a.DLogits),
		targets: v.indexes("targets", a.Targets),
		lse:     v.vector("lse", a.LSE),
		dlosses: v.vector("dlosses", a.DLosses),
		ignore:  a.IgnoreIndex,
	}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.logits.rows, c.logits.cols)
	kernelFor(entropyGradKernel, entropyGradTiles, c.logits, c.dlogits).Run(e.Pool(), c.parts, c)
	return nil
}

// logHalf is ln ½.
const logHalf = -math.Ln2

func (c *entropyGrad) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x, dx, target := c.logits.row(r), c.dlogits.row(r), c.targets.at(r)
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
