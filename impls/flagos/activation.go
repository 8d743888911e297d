package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
)

// activationImpls returns the impls of the activation functions, their gated forms and the
// gradients of both. Each has its own function; all share the code that goes through memory.
func activationImpls() []opregistry.Impl {
	var (
		silu    = function{swish: vector.Swish{Linear: 1}}
		qgelu   = function{swish: vector.Swish{Linear: 1.702}}
		gelu    = function{swish: vector.GELU()}
		geluErf = function{curve: normal}
		sigmoid = function{curve: logistic}
		relu    = function{curve: ramp}
		srelu   = function{curve: squaredRamp}
	)
	return []opregistry.Impl{
		host.Impl(activation.SiLU, silu.forward),
		host.Impl(activation.QGELU, qgelu.forward),
		host.Impl(activation.GELU, gelu.forward),
		host.Impl(activation.GELUErf, geluErf.forward),
		host.Impl(activation.ReLU, relu.forward),
		host.Impl(activation.SReLU, srelu.forward),
		host.Impl(activation.DSiLU, silu.backward),
		host.Impl(activation.DQGELU, qgelu.backward),
		host.Impl(activation.DGELU, gelu.backward),
		host.Impl(activation.DGELUErf, geluErf.backward),
		host.Impl(activation.DReLU, relu.backward),
		host.Impl(activation.DSReLU, srelu.backward),
		host.Impl(activation.DBiasDSiLU, silu.biasBackward),
		host.Impl(activation.DBiasDQGELU, qgelu.biasBackward),
		host.Impl(activation.DBiasDGELU, gelu.biasBackward),
		host.Impl(activation.DBiasDGELUErf, geluErf.biasBackward),
		host.Impl(activation.DBiasDReLU, relu.biasBackward),
		host.Impl(activation.DBiasDSReLU, srelu.biasBackward),
		host.Impl(activation.SwiGLU, silu.ofHalves().forward),
		host.Impl(activation.QGEGLU, qgelu.ofHalves().forward),
		host.Impl(activation.GEGLU, gelu.ofHalves().forward),
		host.Impl(activation.GEGLUErf, geluErf.ofHalves().forward),
		host.Impl(activation.GLU, sigmoid.ofHalves().forward),
		host.Impl(activation.ReGLU, relu.ofHalves().forward),
		host.Impl(activation.SReGLU, srelu.ofHalves().forward),
		host.Impl(activation.ClampedSwiGLU, clampedSwiGLU),
		host.Impl(activation.Softcap, softcap),
		host.Impl(activation.DSoftcap, dsoftcap),
		host.Impl(activation.DSwiGLU, silu.ofHalves().backward),
		host.Impl(activation.DQGEGLU, qgelu.ofHalves().backward),
		host.Impl(activation.DGEGLU, gelu.ofHalves().backward),
		host.Impl(activation.DGEGLUErf, geluErf.ofHalves().backward),
		host.Impl(activation.DGLU, sigmoid.ofHalves().backward),
		host.Impl(activation.DReGLU, relu.ofHalves().backward),
		host.Impl(activation.DSReGLU, srelu.ofHalves().backward),
		host.Impl(activation.ClampedDSwiGLU, clampedDSwiGLU),
	}
}

// ofHalves returns the gated form of a function: the function of the first half of a row, times the
// second half.
func (f function) ofHalves() function {
	f.gated = true
	return f
}

// clampedSwiGLU implements activation.ClampedSwiGLU.
func clampedSwiGLU(e *opregistry.Exec, a activation.ClampedSwiGLUArgs) error {
	return clamped(a.Limit, a.Alpha, a.GLULinearOffset).forward(e, activation.ActivationArgs{Input: a.Input, Output: a.Output})
}

// clampedDSwiGLU implements activation.ClampedDSwiGLU.
func clampedDSwiGLU(e *opregistry.Exec, a activation.ClampedDSwiGLUArgs) error {
	f := clamped(a.Limit, a.Alpha, a.GLULinearOffset)
	return f.backward(e, activation.DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output})
}

// softcap implements activation.Softcap.
func softcap(e *opregistry.Exec, a activation.SoftcapArgs) error {
	f := function{curve: bounded, limit: a.Limit}
	return f.forward(e, activation.ActivationArgs{Input: a.Input, Output: a.Output})
}

// dsoftcap implements activation.DSoftcap.
func dsoftcap(e *opregistry.Exec, a activation.DSoftcapArgs) error {
	f := function{curve: bounded, limit: a.Limit}
	return f.backward(e, activation.DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output})
}

func clamped(limit, alpha, offset opregistry.OptionalFloat) function {
	return function{
		curve: clampedSwish, swish: vector.Swish{Linear: alpha.Or(1.702)},
		limit: limit.Or(7), offset: offset.Or(1), gated: true,
	}
}

type activate struct {
	host.Cut
	exec *opregistry.Exec
	f    function
	x, y host.Matrix
}

var activateKernel = parallel.NewKernel((*activate).part)

// forward implements activation.GELU and, for halves, activation.SwiGLU.
func (f function) forward(e *opregistry.Exec, a activation.ActivationArgs) error {
	var v host.Views
	c := activate{exec: e, f: f, x: v.Matrix("input", a.Input), y: v.Matrix("output", a.Output)}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.x.Rows, c.x.Cols)
	host.KernelFor(activateKernel, activateTiles, c.x, c.y).Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *activate) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.f.scratch(c.exec, c.y.Cols)
	c.rows(lo, hi, &buf)
	buf.release(c.exec)
}

func (c *activate) rows(lo, hi int, buf *scratch) {
	h := c.y.Cols
	for r := lo; r < hi; r++ {
		x, y := c.x.Row(r), c.y.Row(r)
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
	host.Cut
	exec      *opregistry.Exec
	f         function
	dy, x, dx host.Matrix
	dbias     host.Matrix // a row of partial sums for each part; without data when there is no bias
}

var activateGradKernel = parallel.NewKernel((*activateGrad).part)

// backward implements activation.DGELU and, for halves, activation.DSwiGLU.
func (f function) backward(e *opregistry.Exec, a activation.DActivationArgs) error {
	var v host.Views
	c := activateGrad{exec: e, f: f, dy: v.Matrix("grad", a.Grad), x: v.Matrix("fwd_input", a.FwdInput), dx: v.Matrix("output", a.Output)}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.x.Rows, c.x.Cols)
	host.KernelFor(activateGradKernel, activateGradTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.Parts, c)
	return nil
}

// biasBackward implements activation.DBiasDGELU. dbias is summed over the rows of each part and
// then over the parts, in order. Scratch: one row per part.
func (f function) biasBackward(e *opregistry.Exec, a activation.DBiasDActivationArgs) error {
	var v host.Views
	c := activateGrad{exec: e, f: f, dy: v.Matrix("grad", a.Grad), x: v.Matrix("fwd_input", a.FwdInput), dx: v.Matrix("output", a.Output)}
	dbias := v.Flat("dbias", a.DBias)
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutAtMost(c.x.Rows, c.x.Cols, host.MaxSumParts)
	c.dbias = host.PartRows(e.Scratch(c.Parts*host.RoundUp(c.x.Cols, host.LineFloats)), c.Parts, c.x.Cols)
	host.KernelFor(activateGradKernel, activateGradTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.Parts, c)
	host.AddParts(dbias, c.dbias)
	e.Release(c.dbias.Data)
	return nil
}

func (c *activateGrad) part(part int) {
	lo, hi := c.Bounds(part)
	var sum []float32
	if c.dbias.Data != nil {
		sum = c.dbias.Row(part)
		clear(sum)
	}
	buf := c.f.scratch(c.exec, c.dy.Cols)
	c.rows(lo, hi, sum, &buf)
	buf.release(c.exec)
}

// rows computes dx, and adds it to sum unless sum is nil.
func (c *activateGrad) rows(lo, hi int, sum []float32, buf *scratch) {
	h := c.dy.Cols
	for r := lo; r < hi; r++ {
		dy, x, dx := c.dy.Row(r), c.x.Row(r), c.dx.Row(r)
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
