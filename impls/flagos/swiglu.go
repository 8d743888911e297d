package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

type gate struct {
	cut
	exec *opregistry.Exec
	x, y matrix
}

var gateKernel = parallel.NewKernel((*gate).part)

// swiGLU follows ops.SwiGLU.
func swiGLU(e *opregistry.Exec, a ops.SwiGLUArgs) error {
	var v views
	c := gate{exec: e, x: v.matrix("input", a.Input), y: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(gateKernel, gateTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *gate) part(part int) {
	lo, hi := c.bounds(part)
	h := c.y.cols
	for r := lo; r < hi; r++ {
		x := c.x.row(r)
		simd.SwiGLU(c.y.row(r), x[:h], x[h:2*h])
	}
}

type gateGrad struct {
	cut
	exec      *opregistry.Exec
	dy, x, dx matrix
}

var gateGradKernel = parallel.NewKernel((*gateGrad).part)

// dSwiGLU follows ops.DSwiGLU.
func dSwiGLU(e *opregistry.Exec, a ops.DSwiGLUArgs) error {
	var v views
	c := gateGrad{exec: e, dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(gateGradKernel, gateGradTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *gateGrad) part(part int) {
	lo, hi := c.bounds(part)
	h := c.dy.cols
	for r := lo; r < hi; r++ {
		x, dx := c.x.row(r), c.dx.row(r)
		simd.SwiGLUGrad(dx[:h], dx[h:2*h], c.dy.row(r), x[:h], x[h:2*h])
	}
}
