package flagos

import (
	kernel "github.com/primus-fl/primus/internal/kernel/norm"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

type normFwd struct {
	cut
	exec       *opregistry.Exec
	x, y       matrix
	mu, rsigma []float32 // nil mu: rows keep their mean
	gain, bias []float32
	eps        float64
}

var normFwdKernel = parallel.NewKernel((*normFwd).part)

// rmsNormFwd implements norm.RMSNormFwd. Sums of squares are f64.
func rmsNormFwd(e *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	return layerNormFwd(e, norm.LayerNormFwdArgs{
		Input: a.Input, Weight: a.Weight, Output: a.Output, RSigma: a.RSigma, Eps: a.Eps, ZeroCenteredGamma: a.ZeroCenteredGamma,
	})
}

// layerNormFwd implements norm.LayerNormFwd, or norm.RMSNormFwd without mu. Mean and variance are
// f64.
func layerNormFwd(e *opregistry.Exec, a norm.LayerNormFwdArgs) error {
	var v views
	c := normFwd{
		exec:   e,
		x:      v.matrix("input", a.Input),
		y:      v.matrix("output", a.Output),
		rsigma: v.vector("rsigma", a.RSigma),
		eps:    float64(a.Eps),
	}
	gamma := v.flat("weight", a.Weight)
	bias := matrix{cols: c.x.cols}
	if a.Bias != nil {
		bias = v.flat("bias", a.Bias)
	}
	if a.Mu != nil {
		c.mu = v.vector("mu", a.Mu)
	}
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	if a.Mu != nil {
		c.bias = gain(e, bias, false)
		defer e.Release(c.bias)
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(normFwdKernel, normFwdTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *normFwd) part(part int) {
	lo, hi := c.bounds(part)
	y, x, rsigma := c.y.rowsFrom(lo), c.x.rowsFrom(lo), c.rsigma[lo:hi]
	if c.mu == nil {
		kernel.RMSNorm(y, x, c.gain, rsigma, c.eps)
	} else {
		kernel.LayerNorm(y, x, c.gain, c.bias, c.mu[lo:hi], rsigma, c.eps)
	}
}

// maxNormGradParts bounds the partial sums of dgamma.
const maxNormGradParts = 32

type normBwd struct {
	cut
	exec          *opregistry.Exec
	dz, x, dx     matrix
	add           matrix    // without elements when nothing is added
	mu, rsigma    []float32 // nil mu: rows kept their mean
	gain          []float32
	dgamma, dbeta matrix // a row of partial sums for each part; dbeta may be without data
}

var normBwdKernel = parallel.NewKernel((*normBwd).part)

// rmsNormBwd implements norm.RMSNormBwd.
func rmsNormBwd(e *opregistry.Exec, a norm.RMSNormBwdArgs) error {
	return normBackward(e, norm.LayerNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma, ZeroCenteredGamma: a.ZeroCenteredGamma,
	}, nil)
}

// rmsNormBwdAdd implements norm.RMSNormBwdAdd.
func rmsNormBwdAdd(e *opregistry.Exec, a norm.RMSNormBwdAddArgs) error {
	return normBackward(e, norm.LayerNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma, ZeroCenteredGamma: a.ZeroCenteredGamma,
	}, a.Add)
}

// layerNormBwd implements norm.LayerNormBwd.
func layerNormBwd(e *opregistry.Exec, a norm.LayerNormBwdArgs) error { return normBackward(e, a, nil) }

// normBackward computes the gradient of a norm, which without mu is that of norm.RMSNormFwd, plus
// add unless that is nil. dgamma and dbeta are summed over the rows of each part and then over the
// parts, in order. Scratch: one row per part for each of them.
func normBackward(e *opregistry.Exec, a norm.LayerNormBwdArgs, add *tensor.Tensor) error {
	var v views
	c := normBwd{
		exec:   e,
		dz:     v.matrix("dz", a.DZ),
		x:      v.matrix("x", a.X),
		dx:     v.matrix("dx", a.DX),
		rsigma: v.vector("rsigma", a.RSigma),
	}
	gamma, dgamma := v.flat("gamma", a.Gamma), v.flat("dgamma", a.DGamma)
	var dbeta matrix
	if a.DBeta != nil {
		dbeta = v.flat("dbeta", a.DBeta)
	}
	if a.Mu != nil {
		c.mu = v.vector("mu", a.Mu)
	}
	if add != nil {
		c.add = v.matrix("add", add)
	}
	if v.err != nil {
		return v.err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	c.cut = cutAtMost(c.x.rows, c.x.cols, maxNormGradParts)
	size := c.parts * roundUp(c.x.cols, lineFloats)
	buf := e.Scratch(2 * size)
	defer e.Release(buf)
	c.dgamma = partRows(buf, c.parts, c.x.cols)
	if a.DBeta != nil {
		c.dbeta = partRows(buf[size:], c.parts, c.x.cols)
	}
	kernelFor(normBwdKernel, normBwdTiles, c.dz, c.x, c.add, c.dx).Run(e.Pool(), c.parts, c)
	addParts(dgamma, c.dgamma)
	if a.DBeta != nil {
		addParts(dbeta, c.dbeta)
	}
	return nil
}

func (c *normBwd) part(part int) {
	sums := c.sums(part)
	lo, hi := c.bounds(part)
	c.rows(lo, hi, &sums)
}

// sums clears and returns the sums of a part.
func (c *normBwd) sums(part int) kernel.Gradient {
	g := kernel.Gradient{G: c.gain, DGamma: c.dgamma.row(part)}
	clear(g.DGamma)
	if c.dbeta.data != nil {
		g.DBeta = c.dbeta.row(part)
		clear(g.DBeta)
	}
	return g
}

// rows stores the gradient of rows and adds to the sums.
func (c *normBwd) rows(lo, hi int, g *kernel.Gradient) {
	g.DX, g.DZ, g.X, g.RSigma = c.dx.rowsFrom(lo), c.dz.rowsFrom(lo), c.x.rowsFrom(lo), c.rsigma[lo:hi]
	if c.mu != nil {
		g.Mu = c.mu[lo:hi]
	}
	if c.add.data != nil {
		g.Add = c.add.rowsFrom(lo)
	}
	kernel.NormGrad(g)
}

// partRows cuts memory into one row per part; no two rows share a cache line.
func partRows(memory []float32, parts, cols int) matrix {
	return matrix{data: memory, rows: parts, cols: cols, pitch: roundUp(cols, lineFloats)}
}

// addParts adds up the rows of all parts, in order, and stores the sum to a row.
func addParts(sum, parts matrix) {
	var buf [lineFloats * lineFloats]float32
	for at := 0; at < sum.cols; at += len(buf) {
		line := buf[:min(len(buf), sum.cols-at)]
		clear(line)
		for part := range parts.rows {
			vector.Add(line, line, parts.row(part)[at:])
		}
		sum.put(0, at, line)
	}
}

// gain returns γ, or γ+1, in scratch memory; a gamma without elements counts as 0.
func gain(e *opregistry.Exec, gamma matrix, plusOne bool) []float32 {
	out := e.Scratch(gamma.cols)
	if gamma.rows == 0 {
		clear(out)
	} else {
		copy(out, gamma.piece(0, 0, gamma.cols, out))
	}
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
