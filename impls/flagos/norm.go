package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// normImpls returns the impls of the family.
func normImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(norm.RMSNormFwd, rmsNormFwd),
		host.Impl(norm.RMSNormBwd, rmsNormBwd),
		host.Impl(norm.RMSNormBwdAdd, rmsNormBwdAdd),
		host.Impl(norm.LayerNormFwd, layerNormFwd),
		host.Impl(norm.LayerNormBwd, layerNormBwd),
		host.Impl(norm.ResidualAdd, residualAdd),
	}
}

type normFwd struct {
	host.Cut
	exec       *opregistry.Exec
	x, y       host.Matrix
	block      int
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
	var v host.Views
	c := normFwd{
		exec:   e,
		x:      v.Blocks("input", a.Input),
		y:      v.Blocks("output", a.Output),
		rsigma: v.Vector("rsigma", a.RSigma),
		eps:    float64(a.Eps),
	}
	gamma := v.Flat("weight", a.Weight)
	bias := host.Matrix{Cols: c.x.Cols}
	if a.Bias != nil {
		bias = v.Flat("bias", a.Bias)
	}
	if a.Mu != nil {
		c.mu = v.Vector("mu", a.Mu)
	}
	c.block = blockOf(&v, c.x, c.y)
	if v.Err != nil {
		return v.Err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	if a.Mu != nil {
		c.bias = gain(e, bias, false)
		defer e.Release(c.bias)
	}
	c.Cut = host.CutItems(c.x.Rows, c.x.Cols)
	host.KernelFor(normFwdKernel, normFwdTiles, c.x, c.y).Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *normFwd) part(part int) {
	lo, end := c.Bounds(part)
	for hi := lo; lo < end; lo = hi {
		hi = nextBlock(lo, end, c.block)
		y, x, rsigma := rowsFrom(&c.y, lo), rowsFrom(&c.x, lo), c.rsigma[lo:hi]
		if c.mu == nil {
			layers.RMSNorm(y, x, c.gain, rsigma, c.eps)
		} else {
			layers.LayerNorm(y, x, c.gain, c.bias, c.mu[lo:hi], rsigma, c.eps)
		}
	}
}

// blockOf returns the rows of the blocks of the operands, 0 if all of them have rows of one pitch.
// Operands in blocks are all of one width, in blocks of one size.
func blockOf(v *host.Views, operands ...host.Matrix) int {
	block, narrow := 0, 0
	for _, m := range operands {
		if m.Block > 0 && block > 0 && m.Block != block {
			v.Decline("rows in blocks of %d and of %d, this impl serves one size", block, m.Block)
		}
		block = max(block, m.Block)
		if m.Narrow() {
			narrow++
		}
	}
	if block > 0 && narrow != 0 && narrow != len(operands) {
		v.Decline("rows in blocks of %d, which this impl serves in one width of elements", block)
	}
	return block
}

// nextBlock returns the end of the rows from lo on that lie in one block, at most end.
func nextBlock(lo, end, block int) int {
	if block == 0 {
		return end
	}
	return min(end, (lo/block+1)*block)
}

type normBwd struct {
	host.Cut
	exec          *opregistry.Exec
	dz, x, dx     host.Matrix
	block         int
	add           host.Matrix // without elements when nothing is added
	mu, rsigma    []float32   // nil mu: rows kept their mean
	gain          []float32
	dgamma, dbeta host.Matrix // a row of partial sums for each part; dbeta may be without data
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
	var v host.Views
	c := normBwd{
		exec:   e,
		dz:     v.Blocks("dz", a.DZ),
		x:      v.Blocks("x", a.X),
		dx:     v.Blocks("dx", a.DX),
		rsigma: v.Vector("rsigma", a.RSigma),
	}
	gamma, dgamma := v.Flat("gamma", a.Gamma), v.Flat("dgamma", a.DGamma)
	var dbeta host.Matrix
	if a.DBeta != nil {
		dbeta = v.Flat("dbeta", a.DBeta)
	}
	if a.Mu != nil {
		c.mu = v.Vector("mu", a.Mu)
	}
	c.block = blockOf(&v, c.dz, c.x, c.dx)
	if add != nil {
		c.add = v.Blocks("add", add)
		c.block = blockOf(&v, c.dz, c.x, c.dx, c.add)
	}
	if v.Err != nil {
		return v.Err
	}
	c.gain = gain(e, gamma, a.ZeroCenteredGamma)
	defer e.Release(c.gain)
	c.Cut = host.CutAtMost(c.x.Rows, c.x.Cols, host.MaxSumParts)
	size := c.Parts * host.RoundUp(c.x.Cols, host.LineFloats)
	buf := e.Scratch(2 * size)
	defer e.Release(buf)
	c.dgamma = host.PartRows(buf, c.Parts, c.x.Cols)
	if a.DBeta != nil {
		c.dbeta = host.PartRows(buf[size:], c.Parts, c.x.Cols)
	}
	host.KernelFor(normBwdKernel, normBwdTiles, c.dz, c.x, c.add, c.dx).Run(e.Pool(), c.Parts, c)
	host.AddParts(dgamma, c.dgamma)
	if a.DBeta != nil {
		host.AddParts(dbeta, c.dbeta)
	}
	return nil
}

func (c *normBwd) part(part int) {
	sums := c.sums(part)
	lo, hi := c.Bounds(part)
	c.rows(lo, hi, &sums)
}

// sums clears and returns the sums of a part.
func (c *normBwd) sums(part int) layers.Gradient {
	g := layers.Gradient{G: c.gain, DGamma: c.dgamma.Row(part)}
	clear(g.DGamma)
	if c.dbeta.Data != nil {
		g.DBeta = c.dbeta.Row(part)
		clear(g.DBeta)
	}
	return g
}

// rows stores the gradient of rows and adds to the sums.
func (c *normBwd) rows(lo, end int, g *layers.Gradient) {
	for hi := lo; lo < end; lo = hi {
		hi = nextBlock(lo, end, c.block)
		c.rowsOfBlock(lo, hi, g)
	}
}

func (c *normBwd) rowsOfBlock(lo, hi int, g *layers.Gradient) {
	g.DX, g.DZ, g.X, g.RSigma = rowsFrom(&c.dx, lo), rowsFrom(&c.dz, lo), rowsFrom(&c.x, lo), c.rsigma[lo:hi]
	if c.mu != nil {
		g.Mu = c.mu[lo:hi]
	}
	if c.add.Data != nil {
		g.Add = rowsFrom(&c.add, lo)
	}
	layers.NormGrad(g)
}

// gain returns γ, or γ+1, in scratch memory; a gamma without elements counts as 0.
func gain(e *opregistry.Exec, gamma host.Matrix, plusOne bool) []float32 {
	out := e.Scratch(gamma.Cols)
	if gamma.Rows == 0 {
		clear(out)
	} else {
		copy(out, gamma.Piece(0, 0, gamma.Cols, out))
	}
	if plusOne {
		for i := range out {
			out[i]++
		}
	}
	return out
}

// rowsFrom returns the rows of f32 from row r on.
func rowsFrom(m *host.Matrix, r int) layers.Rows {
	return layers.Rows{Data: m.Data[m.At(r):], Pitch: m.Pitch}
}
