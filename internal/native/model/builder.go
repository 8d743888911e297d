package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// Norm normalises the rows of x. Backward takes the gradient of y and may overwrite it with that of
// x.
type Norm interface {
	Forward(r *Run, x, y *tensor.Tensor)
	Backward(r *Run, x, dy, dx *tensor.Tensor)
}

// mlp is the part of a layer after attention. Forward without y computes only what Backward needs.
// Backward takes the x of the last Forward and does not change dy.
type mlp interface {
	Forward(r *Run, x, y *tensor.Tensor)
	Backward(r *Run, x, dy, dx *tensor.Tensor)
}

// Builder makes the blocks of one part of the model, a layer or the parts outside of layers. It
// binds their ops to the manager for that part and gives them memory.
type Builder struct {
	Config     architecture.Config
	Batch, Seq int
	Fwd, Bwd   *opmanager.Manager
	Keep       *memory.Pool // memory that forward fills for backward
	Spare      *memory.Pool // memory that a block needs during a call only; nil for a forward-only pass
	counter    uint64       // the number of random numbers used
	packed     uint64       // that of those for packed documents
	depth      int          // the layer that is made
	Cache      *KVCache     // of a decoder; nil for passes over whole sequences
	wide       *wide        // of routers; nil without
	Part       Part
	stream     *Stream
	context    *contextPlan  // of the tokens of the rank; nil where it has all
	RowBuffers *[4]RowBuffer // scratch of layers whose experts several ranks share
	again      *memory.Pool  // memory of what backward computes again, which layers share; nil for a forward-only pass
	narrow     *memory.Pool  // memory of operands of fp8, which layers share
	Scales     *fp8.Scales   // of operands of fp8; nil unless scaling is delayed
	Apart      bool          // gradients of weights may be computed later
	scaled     int           // how many linear layers have operands of fp8
}

// At moves on to a part of the model, with memory of its own or that of the part before.
func (b *Builder) At(m *opmanager.Manager) {
	b.Fwd, b.Bwd = m.Phase(oppolicy.PhaseForward), m.Phase(oppolicy.PhaseBackward)
	b.Keep.Rewind()
	b.Spare.Rewind()
	b.again.Rewind()
	b.narrow.Rewind()
}

// Act returns memory for activations that forward fills for backward.
func (b *Builder) Act(shape ...int) *tensor.Tensor { return b.Keep.New(b.Config.Compute(), shape...) }

// scratch returns memory for activations, or their gradients, during a call only.
func (b *Builder) scratch(shape ...int) *tensor.Tensor {
	return b.Spare.New(b.Config.Compute(), shape...)
}

// tokens is the number of rows of the residual stream.
func (b *Builder) tokens() int { return b.Batch * b.Seq }

// vectorGrad is the gradient of a vector of weights. Ops overwrite such gradients, so that
// accumulating them needs a second op.
type vectorGrad struct {
	param *Param
	ranks *world.World // the gradient is the sum of theirs; nil for that of this rank
	part  *tensor.Tensor
	add   *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) vectorGrad(p *Param) vectorGrad {
	if p == nil || b.Spare != nil && p.Grad == nil {
		return vectorGrad{}
	}
	return vectorGrad{param: p, part: b.Spare.F32(p.Shape...), add: opmanager.MustBind(b.Bwd, norm.ResidualAdd)}
}

// gainGrad is vectorGrad for an op that always writes the gradient, which is scratch if the weight
// is not trained.
func (b *Builder) gainGrad(p *Param) vectorGrad {
	g := b.vectorGrad(p)
	if g.param == nil {
		g.part = b.Spare.F32(p.Value.NumElements())
	}
	return g
}

// over returns the gradient that is the sum of those of some ranks.
func (g vectorGrad) over(ranks *world.World) vectorGrad {
	g.ranks = ranks
	return g
}

// to returns the tensor to which an op writes the gradient, nil without a weight that is trained.
func (g *vectorGrad) to(r *Run) *tensor.Tensor {
	switch {
	case g.param == nil:
		return g.part
	case r.Accumulate:
		return g.part
	default:
		return g.param.Grad
	}
}

// done adds up the gradient that an op has written.
func (g *vectorGrad) done(r *Run) {
	if g.param != nil && g.ranks != nil {
		r.total(g.ranks, g.to(r))
	}
	if g.param != nil && r.Accumulate {
		Call(r, g.add, norm.ResidualAddArgs{A: g.param.Grad, B: g.part, Output: g.param.Grad})
	}
}

// Linear is y = x·Wᵀ + b.
type Linear struct {
	LinearWeights
	divided  bool           // the sums over ranks are left to the stream, whose rows the ranks divide
	matrix   *tensor.Tensor // the weight as it enters the product of forward
	back     *tensor.Tensor // and that of backward
	biasGrad vectorGrad
	sum      vectorGrad // of a weight that ranks multiply with rows of their own; without ranks elsewhere
	added    []adapter
	eights   *eights
	apart    bool           // the gradient of the weight may be computed later
	kept     *tensor.Tensor // the gradient of the output until then; nil if it is kept elsewhere
	fwd, bwd *opmanager.Bound[gemm.GenericGemmArgs]
}

// Linear makes a projection.
func (b *Builder) Linear(w LinearWeights) Linear {
	in, out := w.Weight.Shape.Cols(), w.Weight.Shape[0]
	if w.InOut {
		in, out = out, in
	}
	matrix, back := b.matrices(w.Weight)
	if w.InOut {
		matrix, back = back, matrix
	}
	return Linear{
		LinearWeights: w, divided: b.Part.Sequence, matrix: matrix, back: back, biasGrad: b.vectorGrad(w.Bias), added: b.adapters(w, in), eights: b.eights(w.Weight, in, out),
		fwd: opmanager.MustBind(b.Fwd, gemm.GenericGemm), bwd: opmanager.MustBind(b.Bwd, gemm.GenericGemm),
	}
}

// Forward writes y.
func (l *Linear) Forward(r *Run, x, y *tensor.Tensor) {
	bias := l.Bias.ValueOrNil()
	if l.Sums && !l.Shared.Leads() { // it is added once
		bias = nil
	}
	Call(r, l.fwd, gemm.GenericGemmArgs{A: l.matrix, TransA: !l.InOut, B: l.eights.input(r, x, false), D: y, Bias: bias})
	for i := range l.added {
		l.added[i].Forward(r, x, y)
	}
	if l.Sums && !l.divided {
		r.total(l.Shared, y)
	}
}

// Backward is dx = dy·W, db = Σ dy over the rows, and dW = dyᵀ·x.
func (l *Linear) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	l.products(r, x, dy, dx, l.biasGrad.to(r))
	l.biasGrad.done(r)
}

// products is backward with another tensor for the gradient of the bias, nil if that has been
// computed.
func (l *Linear) products(r *Run, x, dy, dx, db *tensor.Tensor) {
	narrow := l.eights.gradient(r, dy)
	Call(r, l.bwd, gemm.GenericGemmArgs{A: l.back, TransA: l.InOut, B: narrow, D: dx, Bias: db, Grad: db != nil})
	for i := range l.added {
		l.added[i].Backward(r, x, dy, dx)
	}
	if l.Shared != nil && !l.Sums && !l.divided {
		r.total(l.Shared, dx)
	}
	if l.Weight.Grad == nil {
		return
	}
	if r.later == nil || !l.apart {
		l.product(r, x, dy, narrow)
		return
	}
	if l.kept != nil && r.Err == nil {
		r.fail(l.kept.CopyFrom(dy))
		dy = l.kept
	}
	*r.later = append(*r.later, postponed{l, x, dy})
}

// weights computes the gradient of the weight after the others.
func (l *Linear) weights(r *Run, x, dy *tensor.Tensor) {
	l.product(r, x, dy, l.eights.gradient(r, dy))
}

// product computes the gradient of the weight; narrow is dy as it enters products along rows.
func (l *Linear) product(r *Run, x, dy, narrow *tensor.Tensor) {
	into, accumulate := l.Weight.Grad, r.Accumulate
	if l.sum.ranks != nil {
		into, accumulate = l.sum.to(r), false
	}
	left, right := l.eights.turned(r, dy, narrow), l.eights.input(r, x, true)
	if l.InOut {
		left, right = right, left
	}
	Call(r, l.bwd, gemm.GenericGemmArgs{A: right, B: left, TransB: true, D: into, Grad: true, Accumulate: accumulate})
	if l.sum.ranks != nil {
		l.sum.done(r)
	}
}

// saved returns the record of what an impl keeps for the backward op.
func saved() *opregistry.Saved { return new(opregistry.Saved) }

// DropoutKey determines the random numbers of a pass. The zero value drops nothing.
type DropoutKey struct {
	On  bool
	Key uint64
}

// random reserves the random numbers of n elements and returns their offset.
func (b *Builder) random(n int) uint64 {
	first := b.counter
	b.counter += (uint64(n) + 3) / 4
	return first
}

// randomPacked reserves the random numbers of attention with packed documents and returns their
// offset. How many an op uses depends on the documents: at most T for each pair of tokens and head.
func (b *Builder) randomPacked(heads int) uint64 {
	first, t := b.packed, uint64(b.tokens())
	b.packed += t * t * t * uint64(heads)
	return 1<<63 + first
}

// dropout zeroes elements of rows of the stream; nil keeps all.
type dropout struct {
	probability float32
	runs        []droppedRows
	mask        *tensor.Tensor
	grad        *tensor.Tensor // [R h]
	fwd         *opmanager.Bound[dropoutops.DropoutFwdArgs]
	bwd         *opmanager.Bound[dropoutops.DropoutBwdArgs]
}

// droppedRows are rows that follow each other in the batch of all ranks, which counts the random
// numbers of dropout.
type droppedRows struct {
	rows   Range
	offset uint64
	saved  *opregistry.Saved
}

// of returns the rows of a matrix, and those of a mask with a bit for each of its elements.
func (d *droppedRows) of(x, mask *tensor.Tensor) (rows, bits *tensor.Tensor) {
	if d.rows == (Range{0, x.Shape()[0]}) {
		return x, mask
	}
	h := x.Shape().Cols()
	return memory.Rows(x, d.rows.Lo, d.rows.Hi), memory.Rows(mask, d.rows.Lo*h/8, d.rows.Hi*h/8)
}

// dropout makes the dropout of hidden states; a forward-only pass has none.
func (b *Builder) dropout() *dropout {
	if b.Config.HiddenDropout == 0 || b.Spare == nil {
		return nil
	}
	h := b.Config.HiddenSize
	d := &dropout{
		probability: float32(b.Config.HiddenDropout), mask: b.Keep.New(tensor.U8, (b.rows()*h+7)/8),
		grad: b.Spare.New(b.Config.Compute(), b.rows(), h),
		fwd:  opmanager.MustBind(b.Fwd, dropoutops.DropoutFwd), bwd: opmanager.MustBind(b.Bwd, dropoutops.DropoutBwd),
	}
	offset, first := b.random(b.tokens()*b.contextRanks()*h), 0
	if b.Part.Sequence {
		first = b.Part.Tensor.Rank * b.rows()
	}
	for _, r := range b.context.rows(Range{first, first + b.rows()}) {
		rows := Range{r.at - first, r.at - first + r.n}
		d.runs = append(d.runs, droppedRows{rows: rows, offset: offset + uint64(r.of*h/4), saved: saved()})
	}
	return d
}

// Forward changes x.
func (d *dropout) Forward(r *Run, x *tensor.Tensor) {
	if d == nil || !r.Dropout.On {
		return
	}
	for i := range d.runs {
		rows, mask := d.runs[i].of(x, d.mask)
		Call(r, d.fwd, dropoutops.DropoutFwdArgs{
			Input: rows, Out: rows, Mask: mask, DropoutProbability: d.probability, Seed: r.Dropout.Key, Offset: d.runs[i].offset, Saved: d.runs[i].saved,
		})
	}
}

// Backward returns the gradient of the x before dropout, given that of the x after it. It does not
// change dy.
func (d *dropout) Backward(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if d == nil || !r.Dropout.On {
		return dy
	}
	for i := range d.runs {
		rows, mask := d.runs[i].of(dy, d.mask)
		grad, _ := d.runs[i].of(d.grad, d.mask)
		Call(r, d.bwd, dropoutops.DropoutBwdArgs{GradOutput: rows, Mask: mask, GradInput: grad, DropoutProbability: d.probability, Saved: d.runs[i].saved})
	}
	return d.grad
}
