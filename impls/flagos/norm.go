package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/fused"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// maxNormGradParts bounds the partial sums of dgamma.
const maxNormGradParts = 32

type normFwd struct {
	cut
	exec         *opregistry.Exec
	x, y         matrix
	rsigma, gain []float32
	eps          float64
}

var normFwdKernel = parallel.NewKernel((*normFwd).part)

// rmsNormFwd follows ops.RMSNormFwd. Sums of squares are f64.
func rmsNormFwd(e *opregistry.Exec, a ops.RMSNormFwdArgs) error {
	var v views
	c := normFwd{
		exec:   e,
		x:      v.matrix("input", a.Input),
		y:      v.matrix("output", a.Output),
		rsigma: v.vector("rsigma", a.RSigma),
		eps:    float64(a.Eps),
	}
	gamma := v.line("weight", a.Weight)
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(normFwdKernel, normFwdTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *normFwd) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x := c.x.row(r)
		mean := fused.SumSquares(x) / float64(len(x))
		rsigma := float32(1 / math.Sqrt(mean+c.eps))
		c.rsigma[r] = rsigma
		fused.MulScale(c.y.row(r), x, c.gain, rsigma)
	}
}

type normBwd struct {
	cut
	exec         *opregistry.Exec
	dz, x, dx    matrix
	rsigma, gain []float32
	dgamma       matrix // a row of partial sums for each part
}

var normBwdKernel = parallel.NewKernel((*normBwd).part)

// rmsNormBwd follows ops.RMSNormBwd. dgamma is summed over the rows of each part
// and then over the parts, in order.
func rmsNormBwd(e *opregistry.Exec, a ops.RMSNormBwdArgs) error {
	var v views
	c := normBwd{
		exec:   e,
		dz:     v.matrix("dz", a.DZ),
		x:      v.matrix("x", a.X),
		dx:     v.matrix("dx", a.DX),
		rsigma: v.vector("rsigma", a.RSigma),
	}
	gamma, dgamma := v.line("gamma", a.Gamma), v.line("dgamma", a.DGamma)
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	c.cut = cutAtMost(c.x.rows, c.x.cols, maxNormGradParts)
	c.dgamma = partRows(e.Scratch(c.parts*roundUp(c.x.cols, lineFloats)), c.parts, c.x.cols)
	kernelFor(normBwdKernel, normBwdTiles, c.dz, c.x, c.dx).Run(e.Pool(), c.parts, c)
	addParts(dgamma, c.dgamma)
	e.Release(c.dgamma.data)
	return nil
}

func (c *normBwd) part(part int) {
	lo, hi := c.bounds(part)
	dgamma := c.dgamma.row(part)
	clear(dgamma)
	fused.NormGrad(c.dx.rowsFrom(lo), c.dz.rowsFrom(lo), c.x.rowsFrom(lo), dgamma, c.gain, c.rsigma[lo:hi])
}

// partRows makes a row for each part of memory, in cache lines of its own.
func partRows(memory []float32, parts, cols int) matrix {
	return matrix{data: memory, rows: parts, cols: cols, pitch: roundUp(cols, lineFloats)}
}

// addParts stores the sum over the rows of the parts, in order, to a row.
func addParts(sum, parts matrix) {
	var room [lineFloats * lineFloats]float32
	for at := 0; at < sum.cols; at += len(room) {
		line := room[:min(len(room), sum.cols-at)]
		clear(line)
		for part := range parts.rows {
			simd.Add(line, line, parts.row(part)[at:])
		}
		sum.put(0, at, line)
	}
}

// gain returns gamma, or gamma+1, in scratch memory.
func gain(e *opregistry.Exec, gamma matrix, plusOne bool) []float32 {
	out := e.Scratch(gamma.cols)
	copy(out, gamma.piece(0, 0, gamma.cols, out))
	if plusOne {
		for i := range out {
			out[i]++
		}
	}
	return out
}

// lineFloats is the number of float32s in a cache line.
const lineFloats = 16

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
