package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

type geluFwd struct {
	cut
	exec *opregistry.Exec
	x, y matrix
}

var geluFwdKernel = parallel.NewKernel((*geluFwd).part)

// geluForward follows ops.GELU.
func geluForward(e *opregistry.Exec, a ops.ActivationArgs) error {
	var v views
	c := geluFwd{exec: e, x: v.matrix("input", a.Input), y: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(geluFwdKernel, geluFwdTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *geluFwd) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		x, y := c.x.row(r), c.y.row(r)
		for at := 0; at < len(x); at += geluChunk {
			end := min(at+geluChunk, len(x))
			gelu(y[at:end], x[at:end])
		}
	}
}

type geluBwd struct {
	cut
	exec      *opregistry.Exec
	dy, x, dx matrix
	dbias     matrix // a row of partial sums for each part; without data when there is no bias
}

var geluBwdKernel = parallel.NewKernel((*geluBwd).part)

// geluBackward follows ops.DGELU.
func geluBackward(e *opregistry.Exec, a ops.DActivationArgs) error {
	var v views
	c := geluBwd{exec: e, dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(geluBwdKernel, geluBwdTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.parts, c)
	return nil
}

// geluBiasBackward follows ops.DBiasDGELU. dbias is summed over the rows of each
// part and then over the parts, in order. Scratch: a row a part.
func geluBiasBackward(e *opregistry.Exec, a ops.DBiasDActivationArgs) error {
	var v views
	c := geluBwd{exec: e, dy: v.matrix("grad", a.Grad), x: v.matrix("fwd_input", a.FwdInput), dx: v.matrix("output", a.Output)}
	dbias := v.line("dbias", a.DBias)
	if v.err != nil {
		return v.err
	}
	c.cut = cutAtMost(c.x.rows, c.x.cols, maxNormGradParts)
	c.dbias = partRows(e.Scratch(c.parts*roundUp(c.x.cols, lineFloats)), c.parts, c.x.cols)
	kernelFor(geluBwdKernel, geluBwdTiles, c.dy, c.x, c.dx).Run(e.Pool(), c.parts, c)
	addParts(dbias, c.dbias)
	e.Release(c.dbias.data)
	return nil
}

func (c *geluBwd) part(part int) {
	var room [geluChunk]float32
	lo, hi := c.bounds(part)
	var sum []float32
	if c.dbias.data != nil {
		sum = c.dbias.row(part)
		clear(sum)
	}
	for r := lo; r < hi; r++ {
		dy, x, dx := c.dy.row(r), c.x.row(r), c.dx.row(r)
		for at := 0; at < len(x); at += geluChunk {
			end := min(at+geluChunk, len(x))
			slope := room[:end-at]
			geluDerivative(slope, x[at:end])
			simd.Mul(dx[at:end], dy[at:end], slope)
		}
		if sum != nil {
			simd.Add(sum, sum, dx)
		}
	}
}
