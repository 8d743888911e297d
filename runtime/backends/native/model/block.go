package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/gemm"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/random"
	"github.com/primus-fl/primus/runtime/backends/native/layout"
	"github.com/primus-fl/primus/tensor"
)

// norm normalises the rows of x. backward takes the gradient of y and may overwrite it with that of
// x.
type norm interface {
	forward(r *run, x, y *tensor.Tensor)
	backward(r *run, x, dy, dx *tensor.Tensor)
}

// mlp is the part of a layer after attention. forward without y computes only what backward needs.
// backward takes the x of the last forward and does not
// change dy.
type mlp interface {
	forward(r *run, x, y *tensor.Tensor)
	backward(r *run, x, dy, dx *tensor.Tensor)
}

// builder makes the blocks of one part of the model, a layer or the parts outside of layers. It
// binds their ops to the manager for that part and gives them memory.
type builder struct {
	cfg        Config
	batch, seq int
	fwd, bwd   *opmanager.Manager
	keep       *pool    // memory that forward fills for backward
	spare      *pool    // memory that a block needs during a call only; nil for a forward-only pass
	counter    uint64   // the number of random numbers used
	packed     uint64   // that of those for packed documents
	depth      int      // the layer that is made
	cache      *kvCache // of a decoder; nil for passes over whole sequences
	wide       *wide    // of routers; nil without
	part       Part
	rooms      *[4]layout.Room // scratch of layers whose experts several ranks share
	again      *pool           // memory of what backward computes again, which layers share; nil for a forward-only pass
}

// at moves on to a part of the model, with memory of its own or that of the part before.
func (b *builder) at(m *opmanager.Manager) {
	b.fwd, b.bwd = m.Phase(oppolicy.PhaseForward), m.Phase(oppolicy.PhaseBackward)
	b.keep.rewind()
	b.spare.rewind()
	b.again.rewind()
}

// act returns memory for activations that forward fills for backward.
func (b *builder) act(shape ...int) *tensor.Tensor { return b.keep.new(b.cfg.Compute(), shape...) }

// scratch returns memory for activations, or their gradients, during a call only.
func (b *builder) scratch(shape ...int) *tensor.Tensor { return b.spare.new(b.cfg.Compute(), shape...) }

// tokens is the number of rows of the residual stream.
func (b *builder) tokens() int { return b.batch * b.seq }

// vectorGrad is the gradient of a vector of weights. Ops overwrite such gradients, so that
// accumulating them needs a second op.
type vectorGrad struct {
	param *Param
	part  *tensor.Tensor
	add   *opmanager.Bound[normops.ResidualAddArgs]
}

func (b *builder) vectorGrad(p *Param) vectorGrad {
	if p == nil || b.spare != nil && p.Grad == nil {
		return vectorGrad{}
	}
	return vectorGrad{p, b.spare.f32(p.Value.NumElements()), opmanager.MustBind(b.bwd, normops.ResidualAdd)}
}

// gainGrad is vectorGrad for an op that always writes the gradient, which is scratch if the weight
// is not trained.
func (b *builder) gainGrad(p *Param) vectorGrad {
	g := b.vectorGrad(p)
	if g.param == nil {
		g.part = b.spare.f32(p.Value.NumElements())
	}
	return g
}

// to returns the tensor to which an op writes the gradient, nil without a weight that is trained.
func (g *vectorGrad) to(r *run) *tensor.Tensor {
	switch {
	case g.param == nil:
		return g.part
	case r.accumulate:
		return g.part
	default:
		return g.param.Grad
	}
}

// done accumulates the gradient that an op has written.
func (g *vectorGrad) done(r *run) {
	if g.param != nil && r.accumulate {
		call(r, g.add, normops.ResidualAddArgs{A: g.param.Grad, B: g.part, Output: g.param.Grad})
	}
}

// value returns the values of a weight, nil without one.
func (p *Param) value() *tensor.Tensor {
	if p == nil {
		return nil
	}
	return p.Value
}

// linear is y = x·Wᵀ + b.
type linear struct {
	linearWeights
	matrix   *tensor.Tensor // the weight as it enters products
	biasGrad vectorGrad
	added    []adapter
	eights   *eights
	fwd, bwd *opmanager.Bound[gemm.GenericGemmArgs]
}

func (b *builder) linear(w linearWeights) linear {
	in, out := w.weight.Shape.Cols(), w.weight.Shape[0]
	if w.inOut {
		in, out = out, in
	}
	return linear{
		linearWeights: w, matrix: b.matrix(w.weight), biasGrad: b.vectorGrad(w.bias), added: b.adapters(w, in), eights: b.eights(w.weight, in, out),
		fwd: opmanager.MustBind(b.fwd, gemm.GenericGemm), bwd: opmanager.MustBind(b.bwd, gemm.GenericGemm),
	}
}

func (l *linear) forward(r *run, x, y *tensor.Tensor) {
	bias := l.bias.value()
	if l.sums && !l.shared.Leads() { // it is added once
		bias = nil
	}
	call(r, l.fwd, gemm.GenericGemmArgs{A: l.matrix, TransA: !l.inOut, B: l.eights.input(r, x), D: y, Bias: bias})
	for i := range l.added {
		l.added[i].forward(r, x, y)
	}
	if l.sums {
		r.total(l.shared, y)
	}
}

// backward is dx = dy·W, db = Σ dy over the rows, and dW = dyᵀ·x.
func (l *linear) backward(r *run, x, dy, dx *tensor.Tensor) {
	l.products(r, x, dy, dx, l.biasGrad.to(r))
	l.biasGrad.done(r)
}

// products is backward with another tensor for the gradient of the bias, nil if that has been
// computed.
func (l *linear) products(r *run, x, dy, dx, db *tensor.Tensor) {
	narrow := l.eights.gradient(r, dy)
	call(r, l.bwd, gemm.GenericGemmArgs{A: l.matrix, TransA: l.inOut, B: narrow, D: dx, Bias: db, Grad: db != nil})
	for i := range l.added {
		l.added[i].backward(r, x, dy, dx)
	}
	if l.shared != nil && !l.sums {
		r.total(l.shared, dx)
	}
	if l.weight.Grad == nil {
		return
	}
	left, right := narrow, l.eights.input(r, x)
	if l.inOut {
		left, right = right, left
	}
	call(r, l.bwd, gemm.GenericGemmArgs{A: right, B: left, TransB: true, D: l.weight.Grad, Grad: true, Accumulate: r.accumulate})
}

// saved returns the record of what an impl keeps for the backward op.
func saved() *opregistry.Saved { return new(opregistry.Saved) }

// dropoutKey determines the random numbers of a pass. The zero value drops nothing.
type dropoutKey struct {
	on  bool
	key uint64
}

// Drop makes following passes apply the dropout of the configuration, with random numbers that
// depend on a seed and the number of the batch.
func (p *Pass) Drop(seed, batch uint64) {
	words := random.Philox4x32([4]uint32{uint32(batch), uint32(batch >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	p.dropout = dropoutKey{on: true, key: uint64(words[0]) | uint64(words[1])<<32}
}

// KeepAll turns off dropout for following passes. It is off in a new Pass.
func (p *Pass) KeepAll() { p.dropout = dropoutKey{} }

// random reserves the random numbers of n elements and returns their offset.
func (b *builder) random(n int) uint64 {
	first := b.counter
	b.counter += (uint64(n) + 3) / 4
	return first
}

// randomPacked reserves the random numbers of attention with packed documents and returns their
// offset. How many an op uses depends on the documents: at most T for each pair of tokens and head.
func (b *builder) randomPacked(heads int) uint64 {
	first, t := b.packed, uint64(b.tokens())
	b.packed += t * t * t * uint64(heads)
	return 1<<63 + first
}

// dropout zeroes elements of rows of the hidden size; nil keeps all.
type dropout struct {
	probability float32
	offset      uint64
	mask        *tensor.Tensor
	grad        *tensor.Tensor // [T h]
	saved       *opregistry.Saved
	fwd         *opmanager.Bound[dropoutops.DropoutFwdArgs]
	bwd         *opmanager.Bound[dropoutops.DropoutBwdArgs]
}

// dropout makes the dropout of hidden states; a forward-only pass has none.
func (b *builder) dropout() *dropout {
	if b.cfg.HiddenDropout == 0 || b.spare == nil {
		return nil
	}
	n := b.tokens() * b.cfg.HiddenSize
	return &dropout{
		probability: float32(b.cfg.HiddenDropout), offset: b.random(n), mask: b.keep.new(tensor.U8, (n+7)/8),
		grad: b.scratch(b.tokens(), b.cfg.HiddenSize), saved: saved(),
		fwd: opmanager.MustBind(b.fwd, dropoutops.DropoutFwd), bwd: opmanager.MustBind(b.bwd, dropoutops.DropoutBwd),
	}
}

// forward changes x.
func (d *dropout) forward(r *run, x *tensor.Tensor) {
	if d != nil && r.dropout.on {
		call(r, d.fwd, dropoutops.DropoutFwdArgs{
			Input: x, Out: x, Mask: d.mask, DropoutProbability: d.probability, Seed: r.dropout.key, Offset: d.offset, Saved: d.saved,
		})
	}
}

// backward returns the gradient of the x before dropout, given that of the x after it. It does not
// change dy.
func (d *dropout) backward(r *run, dy *tensor.Tensor) *tensor.Tensor {
	if d == nil || !r.dropout.on {
		return dy
	}
	call(r, d.bwd, dropoutops.DropoutBwdArgs{GradOutput: dy, Mask: d.mask, GradInput: d.grad, DropoutProbability: d.probability, Saved: d.saved})
	return d.grad
}
