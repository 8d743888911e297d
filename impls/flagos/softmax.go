package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// softmaxImpls returns the impls of the family.
func softmaxImpls() []opregistry.Impl {
	every, causal := softmaxRows{}, softmaxRows{causal: true}
	return []opregistry.Impl{
		host.Impl(softmax.ScaledSoftmaxForward, every.forward),
		host.Impl(softmax.ScaledSoftmaxBackward, every.backward),
		host.Impl(softmax.ScaledMaskedSoftmaxForward, maskedSoftmax),
		host.Impl(softmax.ScaledMaskedSoftmaxBackward, every.backward),
		host.Impl(softmax.ScaledUpperTriangMaskedSoftmaxForward, causal.forward),
		host.Impl(softmax.ScaledUpperTriangMaskedSoftmaxBackward, causal.backward),
		host.Impl(softmax.ScaledAlignedCausalMaskedSoftmaxForward, causal.forward),
		host.Impl(softmax.ScaledAlignedCausalMaskedSoftmaxBackward, causal.backward),
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

type forward struct {
	host.Cut
	softmaxRows
	exec  *opregistry.Exec
	x, y  host.Matrix
	scale float32
	mask  softmaxMask
	first int // the row of the operands that the first row is
}

var softmaxKernel = parallel.NewKernel((*forward).part)

// forward implements softmax.ScaledSoftmaxForward.
func (s softmaxRows) forward(e *opregistry.Exec, a softmax.SoftmaxArgs) error {
	var v host.Views
	return run(&v, e, s, a, softmaxMask{})
}

// maskedSoftmax implements softmax.ScaledMaskedSoftmaxForward.
func maskedSoftmax(e *opregistry.Exec, a softmax.ScaledMaskedSoftmaxForwardArgs) error {
	var v host.Views
	mask := maskOf(&v, a)
	return run(&v, e, softmaxRows{}, softmax.SoftmaxArgs{Input: a.Input, Output: a.Output, ScaleFactor: a.ScaleFactor}, mask)
}

func run(v *host.Views, e *opregistry.Exec, s softmaxRows, a softmax.SoftmaxArgs, mask softmaxMask) error {
	c := forward{
		softmaxRows: s.of(a.Input.Shape()), exec: e, scale: a.ScaleFactor, mask: mask,
		x: v.Matrix("input", a.Input), y: v.Matrix("output", a.Output),
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.x.Rows, c.x.Cols)
	host.KernelFor(softmaxKernel, softmaxTiles, c.x, c.y).Run(e.Pool(), c.Parts, c)
	return nil
}

// part keeps a row in the first-level cache from the first pass over it to the last.
func (c *forward) part(part int) {
	var buf [softmaxMaskChunk]float32
	lo, hi := c.Bounds(part)
	for r := lo; r < hi; r++ {
		n := c.seen(c.first + r)
		y := c.y.Row(r)
		clear(y[n:])
		if n == 0 {
			continue
		}
		y = y[:n]
		vector.Scale(c.scale, y, c.x.Row(r)[:n])
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

type backward struct {
	host.Cut
	softmaxRows
	exec      *opregistry.Exec
	dy, y, dx host.Matrix
	scale     float32
	first     int // the row of the operands that the first row is
}

var softmaxGradKernel = parallel.NewKernel((*backward).part)

// backward implements softmax.ScaledSoftmaxBackward.
func (s softmaxRows) backward(e *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
	var v host.Views
	c := backward{
		softmaxRows: s.of(a.SoftmaxResults.Shape()), exec: e, scale: a.ScaleFactor,
		dy: v.Matrix("output_grads", a.OutputGrads), y: v.Matrix("softmax_results", a.SoftmaxResults), dx: v.Matrix("output", a.Output),
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.y.Rows, c.y.Cols)
	host.KernelFor(softmaxGradKernel, softmaxGradTiles, c.dy, c.y, c.dx).Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *backward) part(part int) {
	lo, hi := c.Bounds(part)
	for r := lo; r < hi; r++ {
		n := c.seen(c.first + r)
		dx := c.dx.Row(r)
		dy, y := c.dy.Row(r)[:n], c.y.Row(r)[:n]
		clear(dx[n:])
		vector.MulSub(dx, y, dy, vector.Dot(y, dy))
		if c.scale != 1 {
			vector.Scale(c.scale, dx, dx[:n])
		}
	}
}
