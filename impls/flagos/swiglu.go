package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/fused"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// gateChunk is the number of elements whose logistic function is kept in the
// first-level cache between the loop that makes it and the one that uses it.
const gateChunk = 1024

type gate struct {
	cut
	x, y matrix
}

var gateKernel = parallel.NewKernel((*gate).part)

// swiGLU follows ops.SwiGLU.
func swiGLU(e *opregistry.Exec, a ops.SwiGLUArgs) error {
	var v views
	c := gate{x: v.matrix("input", a.Input), y: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	gateKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *gate) part(part int) {
	var sigma [gateChunk]float32
	lo, hi := c.bounds(part)
	h := c.y.cols
	for r := lo; r < hi; r++ {
		x, y := c.x.row(r), c.y.row(r)
		a, b := x[:h], x[h:2*h]
		for at := 0; at < h; at += gateChunk {
			end := min(at+gateChunk, h)
			s := sigma[:end-at]
			simd.Sigmoid(s, a[at:end])
			fused.Gate(y[at:end], a[at:end], s, b[at:end])
		}
	}
}

type gateGrad struct {
	cut
	dy, x, dx matrix
}

var gateGradKernel = parallel.NewKernel((*gateGrad).part)

// dSwiGLU follows ops.DSwiGLU.
func dSwiGLU(e *opregistry.Exec, a ops.DSwiGLUArgs) error {
	var v views
	c := gateGrad{dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	gateGradKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *gateGrad) part(part int) {
	var sigma [gateChunk]float32
	lo, hi := c.bounds(part)
	h := c.dy.cols
	for r := lo; r < hi; r++ {
		dy, x, dx := c.dy.row(r), c.x.row(r), c.dx.row(r)
		a, b, da, db := x[:h], x[h:2*h], dx[:h], dx[h:2*h]
		for at := 0; at < h; at += gateChunk {
			end := min(at+gateChunk, h)
			s := sigma[:end-at]
			simd.Sigmoid(s, a[at:end])
			fused.GateGrad(da[at:end], db[at:end], dy[at:end], a[at:end], s, b[at:end])
		}
	}
}
