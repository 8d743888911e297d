package flagos

import (
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	softmaxops "github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

func softmaxImpls() []opregistry.Impl {
	every, causal := softmaxRows{}, softmaxRows{causal: true}
	return []opregistry.Impl{
		impl(softmaxops.ScaledSoftmaxForward, every.forward),
		impl(softmaxops.ScaledSoftmaxBackward, every.backward),
		impl(softmaxops.ScaledMaskedSoftmaxForward, maskedSoftmax),
		impl(softmaxops.ScaledMaskedSoftmaxBackward, every.backward),
		impl(softmaxops.ScaledUpperTriangMaskedSoftmaxForward, causal.forward),
		impl(softmaxops.ScaledUpperTriangMaskedSoftmaxBackward, causal.backward),
		impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxForward, causal.forward),
		impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxBackward, causal.backward),
	}
}

// softmaxRows says how many columns, from the first, belong to the softmax of each row of scores:
// all, or those of a causal mask aligned to the bottom right of matrices [rows, cols].
type softmaxRows struct {
	causal     bool
	rows, cols int
}

// of returns s for scores of this shape.
func (s softmaxRows) of(scores tensor.Shape) softmaxRows {
	s.rows, s.cols = scores[len(scores)-2], scores.Cols()
	return s
}

func (s *softmaxRows) seen(row int) int {
	if !s.causal {
		return s.cols
	}
	return max(row%s.rows+s.cols-s.rows+1, 0)
}

type softmax struct {
	cut
	softmaxRows
	exec  *opregistry.Exec
	x, y  matrix
	scale float32
	mask  softmaxMask
	first int // the row of the operands that the first row is
}

var softmaxKernel = parallel.NewKernel((*softmax).part)

// forward implements softmax.ScaledSoftmaxForward.
func (s softmaxRows) forward(e *opregistry.Exec, a softmaxops.SoftmaxArgs) error {
	var v views
	return v.softmax(e, s, a, softmaxMask{})
}

// maskedSoftmax implements softmax.ScaledMaskedSoftmaxForward.
func maskedSoftmax(e *opregistry.Exec, a softmaxops.ScaledMaskedSoftmaxForwardArgs) error {
	var v views
	mask := v.softmaxMask(a)
	return v.softmax(e, softmaxRows{}, softmaxops.SoftmaxArgs{Input: a.Input, Output: a.Output, ScaleFactor: a.ScaleFactor}, mask)
}

func (v *views) softmax(e *opregistry.Exec, s softmaxRows, a softmaxops.SoftmaxArgs, mask softmaxMask) error {
	c := softmax{
		softmaxRows: s.of(a.Input.Shape()), exec: e, scale: a.ScaleFactor, mask: mask,
		x: v.matrix("input", a.Input), y: v.matrix("output", a.Output),
	}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.x.rows, c.x.cols)
	kernelFor(softmaxKernel, softmaxTiles, c.x, c.y).Run(e.Pool(), c.parts, c)
	return nil
}

// part keeps a row in the first-level cache from the first pass over it to the last.
func (c *softmax) part(part int) {
	var buf [softmaxMaskChunk]float32
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		n := c.seen(c.first + r)
		y := c.y.row(r)
		clear(y[n:])
		if n == 0 {
			continue
		}
		y = y[:n]
		vector.Scale(c.scale, y, c.x.row(r)[:n])
		c.mask.apply(y, c.first+r, buf[:])
		most := vector.Max(y)
		sum := vector.ExpSum(y, y, most)
		if c.mask.hides(most) && sum == sum {
			clear(y)
			continue
		}
		vector.Scale(1/sum, y, y)
	}
}

type softmaxGrad struct {
	cut
	softmaxRows
	exec      *opregistry.Exec
	dy, y, dx matrix
	scale     float32
	first     int // the row of the operands that the first row is
}

var softmaxGradKernel = parallel.NewKernel((*softmaxGrad).part)

// backward implements softmax.ScaledSoftmaxBackward.
func (s softmaxRows) backward(e *opregistry.Exec, a softmaxops.SoftmaxBackwardArgs) error {
	var v views
	c := softmaxGrad{
		softmaxRows: s.of(a.SoftmaxResults.Shape()), exec: e, scale: a.ScaleFactor,
		dy: v.matrix("output_grads", a.OutputGrads), y: v.matrix("softmax_results", a.SoftmaxResults), dx: v.matrix("output", a.Output),
	}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.y.rows, c.y.cols)
	kernelFor(softmaxGradKernel, softmaxGradTiles, c.dy, c.y, c.dx).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *softmaxGrad) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		n := c.seen(c.first + r)
		dx := c.dx.row(r)
		dy, y := c.dy.row(r)[:n], c.y.row(r)[:n]
		clear(dx[n:])
		vector.MulSub(dx, y, dy, vector.Dot(y, dy))
		if c.scale != 1 {
			vector.Scale(c.scale, dx, dx[:n])
		}
	}
}
