package flagos

import (
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	activationops "github.com/primus-fl/primus/ops/activation"
)

// activationImpls returns the impls of the activation functions, their gated forms and the
// gradients of both. Each has its own function; all share the code that goes through memory.
func activationImpls() []opregistry.Impl {
	var (
		silu    = activation{swish: vector.Swish{Linear: 1}}
		qgelu   = activation{swish: vector.Swish{Linear: 1.702}}
		gelu    = activation{swish: geluGate()}
		sigmoid = activation{curve: logistic}
		relu    = activation{curve: ramp}
		srelu   = activation{curve: squaredRamp}
	)
	return []opregistry.Impl{
		impl(activationops.SiLU, silu.forward),
		impl(activationops.QGELU, qgelu.forward),
		impl(activationops.GELU, gelu.forward),
		impl(activationops.ReLU, relu.forward),
		impl(activationops.SReLU, srelu.forward),
		impl(activationops.DSiLU, silu.backward),
		impl(activationops.DQGELU, qgelu.backward),
		impl(activationops.DGELU, gelu.backward),
		impl(activationops.DReLU, relu.backward),
		impl(activationops.DSReLU, srelu.backward),
		impl(activationops.DBiasDSiLU, silu.biasBackward),
		impl(activationops.DBiasDQGELU, qgelu.biasBackward),
		impl(activationops.DBiasDGELU, gelu.biasBackward),
		impl(activationops.DBiasDReLU, relu.biasBackward),
		impl(activationops.DBiasDSReLU, srelu.biasBackward),
		impl(activationops.SwiGLU, silu.ofHalves().forward),
		impl(activationops.QGEGLU, qgelu.ofHalves().forward),
		impl(activationops.GEGLU, gelu.ofHalves().forward),
		impl(activationops.GLU, sigmoid.ofHalves().forward),
		impl(activationops.ReGLU, relu.ofHalves().forward),
		impl(activationops.SReGLU, srelu.ofHalves().forward),
		impl(activationops.ClampedSwiGLU, clampedSwiGLU),
		impl(activationops.DSwiGLU, silu.ofHalves().backward),
		impl(activationops.DQGEGLU, qgelu.ofHalves().backward),
		impl(activationops.DGEGLU, gelu.ofHalves().backward),
		impl(activationops.DGLU, sigmoid.ofHalves().backward),
		impl(activationops.DReGLU, relu.ofHalves().backward),
		impl(activationops.DSReGLU, srelu.ofHalves().backward),
		impl(activationops.ClampedDSwiGLU, clampedDSwiGLU),
	}
}

// geluGate is x/2·(1 + tanh u) = x·σ(2u), the tanh form of GELU. Source: Hendrycks and
// Gimpel 2016, arXiv:1606.08415.
func geluGate() vector.Swish {
	const linear = 1.5957691216057308 // 2·√(2/π)
	return vector.Swish{Linear: linear, Cubic: linear * 0.044715}
}

// ofHalves returns the gated form of a function: the function of the first half of a row, times the
// second half.
func (f activation) ofHalves() activation {
	f.gated = true
	return f
}

// clampedSwiGLU implements activation.ClampedSwiGLU.
func clampedSwiGLU(e *opregistry.Exec, a activationops.ClampedSwiGLUArgs) error {
	return clamped(a.Limit, a.Alpha, a.GLULinearOffset).forward(e, activationops.ActivationArgs{Input: a.Input, Output: a.Output})
}

// clampedDSwiGLU implements activation.ClampedDSwiGLU.
func clampedDSwiGLU(e *opregistry.Exec, a activationops.ClampedDSwiGLUArgs) error {
	f := clamped(a.Limit, a.Alpha, a.GLULinearOffset)
	return f.backward(e, activationops.DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output})
}

func clamped(limit, alpha, offset opregistry.OptionalFloat) activation {
	return activation{
		curve: clampedSwish, swish: vector.Swish{Linear: alpha.Or(1.702)},
		limit: limit.Or(7), offset: offset.Or(1), gated: true,
	}
}

type activate struct {
	cut
	exec *opregistry.Exec
	f    activation
	x, y matrix
}

var activateKernel = parallel.NewKernel((*activate).part)

// forward implements activation.GELU and, for halves, activation.SwiGLU.
func (f activation) forward(e *opregistry.Exec, a activationops.ActivationArgs) error {
	var v views
	c := activate{exec: e, f: f, x: v.matrix("input", a.Input), y: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(activateKernel, activateTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *activate) part(part int) {
	lo, hi := c.bounds(part)
	buf := c.f.scratch(c.exec, c.y.cols)
	c.rows(lo, hi, &buf)
	buf.release(c.exec)
}

func (c *activate) rows(lo, hi int, buf *activationScratch) {
	h := c.y.cols
	for r := lo; r < hi; r++ {
		x, y := c.x.row(r), c.y.row(r)
		for at := 0; at < h; at += buf.chunk {
			n := min(buf.chunk, h-at)
			var b []float32
			if c.f.gated {
				b = x[h+at:][:n]
			} else {
				b = buf.ones[:n]
			}
			c.f.value(y[at:][:n], x[at:][:n], b, buf)
		}
	}
}

type activateGrad struct {
	cut
	exec      *opregistry.Exec
	f         activation
	dy, x, dx matrix
	dbias     matrix // a row of partial sums for each part; without data when there is no bias
}

var activateGradKernel = parallel.NewKernel((*activateGrad).part)

// backward implements activation.DGELU and, for halves, activation.DSwiGLU.
func (f activation) backward(e *opregistry.Exec, a activationops.DActivationArgs) error {
	var v views
	c := activateGrad{exec: e, f: f, dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(activateGradKernel, activateGradTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.parts, c)
	return nil
}

// biasBackward implements activation.DBiasDGELU. dbias is summed over the rows of each part and then over
// the parts, in order. Scratch: one row per part.
func (f activation) biasBackward(e *opregistry.Exec, a activationops.DBiasDActivationArgs) error {
	var v views
	c := activateGrad{exec: e, f: f, dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	dbias := v.flat("dbias", a.DBias)
	if v.err != nil {
		return v.err
	}
	c.cut = cutAtMost(c.x.rows, c.x.cols, maxNormGradParts)
	c.dbias = partRows(e.Scratch(c.parts*roundUp(c.x.cols, lineFloats)), c.parts, c.x.cols)
	kernelFor(activateGradKernel, activateGradTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.parts, c)
	addParts(dbias, c.dbias)
	e.Release(c.dbias.data)
	return nil
}

func (c *activateGrad) part(part int) {
	lo, hi := c.bounds(part)
	var sum []float32
	if c.dbias.data != nil {
		sum = c.dbias.row(part)
		clear(sum)
	}
	buf := c.f.scratch(c.exec, c.dy.cols)
	c.rows(lo, hi, sum, &buf)
	buf.release(c.exec)
}

// rows computes dx, and adds it to sum unless sum is nil.
func (c *activateGrad) rows(lo, hi int, sum []float32, buf *activationScratch) {
	h := c.dy.cols
	for r := lo; r < hi; r++ {
		dy, x, dx := c.dy.row(r), c.x.row(r), c.dx.row(r)
		for at := 0; at < h; at += buf.chunk {
			n := min(buf.chunk, h-at)
			var b, db []float32
			if c.f.gated {
				b, db = x[h+at:][:n], dx[h+at:][:n]
			} else {
				b, db = buf.ones[:n], buf.unused[:n]
			}
			c.f.gradient(dx[at:][:n], db, dy[at:][:n], x[at:][:n], b, buf)
		}
		if sum != nil {
			vector.Add(sum, sum, dx)
		}
	}
}
