package model

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// adapter computes what an adapter adds to a projection.
type adapter struct {
	AdapterWeights
	matrixA, matrixB *tensor.Tensor
	scale            opregistry.OptionalFloat
	hidden, dHidden  *tensor.Tensor // x·Aᵀ [T rank], scratch
	out, grad        columns        // the columns of y and of dy
	drop             *adapterDropout
	sum              vectorGrad // of the matrix that ranks have in common, of those that share the projection
	fwd, bwd         *opmanager.Bound[gemm.GenericGemmArgs]
}

// adapters returns the adapters of a projection of in columns. Their memory is scratch: backward
// computes the small products of forward again.
func (b *Builder) adapters(w LinearWeights, in int) []adapter {
	if len(w.Adapters) == 0 {
		return nil
	}
	memory := b.Keep // of a forward-only pass, which its layers share
	if b.again != nil {
		memory = b.again
	}
	d, t := b.Config.Compute(), b.tokens()
	hidden, dHidden := memory.New(d, t, b.Config.Rank), memory.New(d, t, b.Config.Rank)
	var dropped, dDropped *tensor.Tensor
	if b.Config.LoRA.Dropout > 0 && b.Spare != nil {
		dropped, dDropped = memory.New(d, t, in), memory.New(d, t, in)
	}
	var all []adapter
	for _, one := range w.Adapters {
		a := adapter{
			AdapterWeights: one, matrixA: b.matrix(one.A), matrixB: b.matrix(one.B), scale: opregistry.Float(float32(b.Config.Scale())),
			hidden: hidden, dHidden: dHidden,
			fwd: opmanager.MustBind(b.Fwd, gemm.GenericGemm), bwd: opmanager.MustBind(b.Bwd, gemm.GenericGemm),
		}
		if w.Shared != nil {
			common := one.A
			if w.Sums {
				common = one.B
			}
			a.sum = b.vectorGrad(common).over(w.Shared)
		}
		if dropped != nil {
			n := t * in
			a.drop = &adapterDropout{
				probability: float32(b.Config.LoRA.Dropout), offset: b.random(n), out: dropped, grad: dDropped, mask: memory.New(tensor.U8, (n+7)/8), saved: saved(),
				fwd: opmanager.MustBind(b.Fwd, dropoutops.DropoutFwd), bwd: opmanager.MustBind(b.Bwd, dropoutops.DropoutBwd),
				add: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
			}
		}
		all = append(all, a)
	}
	return all
}

// columns is a view of some columns of a matrix, made once per matrix.
type columns struct{ of, view *tensor.Tensor }

func (c *columns) slice(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if c.of != t {
		rows := memory.Must(t.Reshape(t.Shape().NumElements()/t.Shape().Cols(), t.Shape().Cols()))
		c.of, c.view = t, memory.Must(rows.Slice(1, lo, hi))
	}
	return c.view
}

// down computes hidden and returns the x that it has used.
func (a *adapter) down(r *Run, x *tensor.Tensor) *tensor.Tensor {
	if a.drop != nil && r.Dropout.On {
		x = a.drop.Forward(r, x)
	}
	Call(r, a.fwd, gemm.GenericGemmArgs{A: a.matrixA, TransA: true, B: x, D: a.hidden})
	return x
}

// Forward adds to y.
func (a *adapter) Forward(r *Run, x, y *tensor.Tensor) {
	a.down(r, x)
	Call(r, a.fwd, gemm.GenericGemmArgs{A: a.matrixB, TransA: true, B: a.hidden, D: a.out.slice(y, a.Lo, a.Hi), Accumulate: true, Alpha: a.scale})
}

// Backward writes the gradients of A and B and adds to dx.
func (a *adapter) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	used := a.down(r, x)
	dy = a.grad.slice(dy, a.Lo, a.Hi)
	Call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixB, B: dy, D: a.dHidden, Alpha: a.scale})
	a.gradient(r, a.B, gemm.GenericGemmArgs{A: a.hidden, B: dy, TransB: true, Grad: true, Alpha: a.scale})
	a.gradient(r, a.A, gemm.GenericGemmArgs{A: used, B: a.dHidden, TransB: true, Grad: true})
	if used == x {
		Call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixA, B: a.dHidden, D: dx, Accumulate: true})
		return
	}
	Call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixA, B: a.dHidden, D: a.drop.grad})
	a.drop.Backward(r, dx)
}

// gradient writes the product that is the gradient of a matrix.
func (a *adapter) gradient(r *Run, of *Param, args gemm.GenericGemmArgs) {
	if a.sum.param != of {
		args.D, args.Accumulate = of.Grad, r.Accumulate
		Call(r, a.bwd, args)
		return
	}
	args.D = a.sum.to(r)
	Call(r, a.bwd, args)
	a.sum.done(r)
}

// adapterDropout is the dropout of the input of an adapter, which has a result of its own.
type adapterDropout struct {
	probability float32
	offset      uint64
	out, grad   *tensor.Tensor // [T in]
	mask        *tensor.Tensor
	saved       *opregistry.Saved
	fwd         *opmanager.Bound[dropoutops.DropoutFwdArgs]
	bwd         *opmanager.Bound[dropoutops.DropoutBwdArgs]
	add         *opmanager.Bound[norm.ResidualAddArgs]
}

func (d *adapterDropout) Forward(r *Run, x *tensor.Tensor) *tensor.Tensor {
	Call(r, d.fwd, dropoutops.DropoutFwdArgs{
		Input: x, Out: d.out, Mask: d.mask, DropoutProbability: d.probability, Seed: r.Dropout.Key, Offset: d.offset, Saved: d.saved,
	})
	return d.out
}

// Backward adds the gradient of x to dx, given that of out in grad.
func (d *adapterDropout) Backward(r *Run, dx *tensor.Tensor) {
	Call(r, d.bwd, dropoutops.DropoutBwdArgs{GradOutput: d.grad, Mask: d.mask, GradInput: d.grad, DropoutProbability: d.probability, Saved: d.saved})
	Call(r, d.add, norm.ResidualAddArgs{A: dx, B: d.grad, Output: dx})
}
