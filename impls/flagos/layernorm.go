package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/fused"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

type layerNormFwd struct {
	cut
	exec             *opregistry.Exec
	x, y             matrix
	mu, rsigma       []float32
	gain, bias, ones []float32 // no bias when it is nil
	eps              float64
}

var layerNormFwdKernel = parallel.NewKernel((*layerNormFwd).part)

// layerNormForward follows ops.LayerNormFwd. A row is shifted by its mean in f32, and
// the mean of what is left corrects both mean and variance, whose squares are added
// in f64. Scratch: a row.
func layerNormForward(e *opregistry.Exec, a ops.LayerNormFwdArgs) error {
	var v views
	c := layerNormFwd{
		exec:   e,
		x:      v.matrix("input", a.Input),
		y:      v.matrix("output", a.Output),
		mu:     v.vector("mu", a.Mu),
		rsigma: v.vector("rsigma", a.RSigma),
		eps:    float64(a.Eps),
	}
	gamma := v.line("weight", a.Weight)
	var bias matrix
	if a.Bias != nil {
		bias = v.line("bias", a.Bias)
	}
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	if a.Bias != nil {
		room := e.Scratch(bias.cols)
		defer e.Release(room)
		c.bias = bias.piece(0, 0, bias.cols, room)
	}
	c.ones = ones(e, c.x.cols)
	defer e.Release(c.ones)
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(layerNormFwdKernel, layerNormFwdTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *layerNormFwd) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x, y := c.x.row(r), c.y.row(r)
		n := float64(len(x))
		mu := simd.Sum(x) / float32(n)
		simd.MulSub(y, c.ones, x, mu)
		left := float64(simd.Sum(y)) / n
		rsigma := float32(1 / math.Sqrt(max(fused.SumSquares(y)/n-left*left, 0)+c.eps))
		c.mu[r], c.rsigma[r] = mu, rsigma
		if !math.IsInf(float64(mu), 0) {
			c.mu[r] = float32(float64(mu) + left)
		}
		simd.MulSub(y, c.gain, y, float32(left))
		simd.Scale(rsigma, y, y)
		if c.bias != nil {
			simd.Add(y, y, c.bias)
		}
	}
}

type layerNormBwd struct {
	cut
	exec             *opregistry.Exec
	dz, x, dx        matrix
	mu, rsigma       []float32
	gain, ones       []float32
	dgamma, dbeta    matrix // a row of partial sums for each part
	xhat, dzg, terms matrix // a row of scratch for each part
}

var layerNormBwdKernel = parallel.NewKernel((*layerNormBwd).part)

// layerNormBackward follows ops.LayerNormBwd. dgamma and dbeta are summed over the
// rows of each part and then over the parts, in order. Scratch: five rows a part and
// one more.
func layerNormBackward(e *opregistry.Exec, a ops.LayerNormBwdArgs) error {
	var v views
	c := layerNormBwd{
		exec:   e,
		dz:     v.matrix("dz", a.DZ),
		x:      v.matrix("x", a.X),
		dx:     v.matrix("dx", a.DX),
		mu:     v.vector("mu", a.Mu),
		rsigma: v.vector("rsigma", a.RSigma),
	}
	gamma, dgamma := v.line("gamma", a.Gamma), v.line("dgamma", a.DGamma)
	var dbeta matrix
	if a.DBeta != nil {
		dbeta = v.line("dbeta", a.DBeta)
	}
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	c.ones = ones(e, c.x.cols)
	defer e.Release(c.ones)
	c.cut = cutAtMost(c.x.rows, c.x.cols, maxNormGradParts)
	scratch := [...]*matrix{&c.dgamma, &c.dbeta, &c.xhat, &c.dzg, &c.terms}
	size := c.parts * roundUp(c.x.cols, lineFloats)
	memory := e.Scratch(len(scratch) * size)
	defer e.Release(memory)
	for i, m := range scratch {
		*m = partRows(memory[i*size:], c.parts, c.x.cols)
	}
	kernelFor(layerNormBwdKernel, layerNormBwdTiles, c.dz, c.x, c.dx).Run(e.Pool(), c.parts, c)
	addParts(dgamma, c.dgamma)
	if a.DBeta != nil {
		addParts(dbeta, c.dbeta)
	}
	return nil
}

func (c *layerNormBwd) part(part int) {
	lo, hi := c.bounds(part)
	dgamma, dbeta := c.dgamma.row(part), c.dbeta.row(part)
	xhat, dzg, terms := c.xhat.row(part), c.dzg.row(part), c.terms.row(part)
	clear(dgamma)
	clear(dbeta)
	for r := lo; r < hi; r++ {
		dz, dx, rsigma := c.dz.row(r), c.dx.row(r), c.rsigma[r]
		n := float32(len(dz))
		simd.MulSub(xhat, c.ones, c.x.row(r), c.mu[r])
		simd.Scale(rsigma, xhat, xhat)
		simd.Mul(terms, dz, xhat)
		simd.Add(dgamma, dgamma, terms)
		simd.Add(dbeta, dbeta, dz)
		simd.Mul(dzg, dz, c.gain)
		mean, slope := simd.Sum(dzg)/n, simd.Dot(dzg, xhat)/n
		simd.Axpy(-slope, xhat, dzg)
		simd.MulSub(dx, c.ones, dzg, mean)
		simd.Scale(rsigma, dx, dx)
	}
}

// ones returns a vector of ones in scratch memory.
func ones(e *opregistry.Exec, n int) []float32 {
	out := e.Scratch(n)
	for i := range out {
		out[i] = 1
	}
	return out
}
