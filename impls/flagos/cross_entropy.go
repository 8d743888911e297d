package flagos

import (
	"math"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// expChunk is the number of exponentials whose sum is f32; the sums of chunks are
// added up in f64.
const expChunk = 1024

type entropy struct {
	cut
	exec        *opregistry.Exec
	logits      matrix
	targets     indexes
	losses, lse []float32
	ignore      int
}

var entropyKernel = parallel.NewKernel((*entropy).part)

// crossEntropyFwd follows ops.CrossEntropyFwd. A row with +Inf and no NaN has the
// log-sum-exp +Inf, one of −Inf alone −Inf.
func crossEntropyFwd(e *opregistry.Exec, a ops.CrossEntropyFwdArgs) error {
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

// logRows is how many rows' logarithms are taken in a row: each is a long chain of
// operations, but those of several overlap.
const logRows = 32

func (c *entropy) part(part int) {
	lo, hi := c.bounds(part)
	for ; lo < hi; lo += logRows {
		c.block(lo, min(lo+logRows, hi))
	}
}

// block serves at most logRows rows.
func (c *entropy) block(lo, hi int) {
	var most, sum [logRows]float64
	for r := lo; r < hi; r++ {
		most[r-lo], sum[r-lo] = sumExp(c.logits.row(r))
	}
	for r := lo; r < hi; r++ {
		most, rest := most[r-lo], math.Log(sum[r-lo])
		c.lse[r] = float32(most + rest)
		c.losses[r] = 0
		if target := c.targets.at(r); target != c.ignore {
			c.losses[r] = float32(most - float64(c.logits.row(r)[target]) + rest)
		}
	}
}

// sumExp returns the maximum of x and Σ exp(x − maximum), which is 1 where the
// maximum is not finite.
func sumExp(x []float32) (most, sum float64) {
	shift := simd.Max(x)
	if f := float64(shift); math.IsInf(f, 0) || f != f {
		return widest(x), 1
	}
	for len(x) > expChunk {
		sum += float64(simd.SumExp(x[:expChunk], shift))
		x = x[expChunk:]
	}
	sum += float64(simd.SumExp(x, shift))
	return float64(shift), sum
}

// widest returns the maximum, or NaN where there is one.
func widest(x []float32) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		most = max(most, float64(v))
	}
	return most
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

// crossEntropyBwd follows ops.CrossEntropyBwd.
func crossEntropyBwd(e *opregistry.Exec, a ops.CrossEntropyBwdArgs) error {
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
		simd.ExpScale(dx, x, lse, dloss)
		if log > logHalf {
			// p−1 has lost digits where p is close to 1.
			dx[target] = float32(float64(dloss) * math.Expm1(log))
		} else {
			dx[target] -= dloss
		}
	}
}
