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
	entropyKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *entropy) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x := c.logits.row(r)
		most, rest := logSumExp(x)
		c.lse[r] = float32(most + rest)
		c.losses[r] = 0
		if target := c.targets.at(r); target != c.ignore {
			c.losses[r] = float32(most - float64(x[target]) + rest)
		}
	}
}

// logSumExp returns ln Σ exp(x) as the sum of the maximum and a rest.
func logSumExp(x []float32) (most, rest float64) {
	shift := simd.Max(x)
	if f := float64(shift); math.IsInf(f, 0) || f != f {
		return widest(x), 0
	}
	sum := 0.
	for len(x) > expChunk {
		sum += float64(simd.SumExp(x[:expChunk], shift))
		x = x[expChunk:]
	}
	sum += float64(simd.SumExp(x, shift))
	return float64(shift), math.Log(sum)
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
	entropyGradKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *entropyGrad) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x, dx, target := c.logits.row(r), c.dlogits.row(r), c.targets.at(r)
		if target == c.ignore {
			clear(dx)
			continue
		}
		lse, dloss := c.lse[r], c.dlosses[r]
		// 1−p loses digits where p is close to 1; the target is one element of
		// many, so it takes the long way.
		atTarget := float64(dloss) * math.Expm1(float64(x[target])-float64(lse))
		simd.ExpScale(dx, x, lse, dloss)
		dx[target] = float32(atTarget)
	}
}
