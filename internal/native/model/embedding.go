package model

import (
	"fmt"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/sequence"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// Embedding is the sum of the vectors of tokens and, if they are learned, of positions.
type Embedding struct {
	table, positionTable *tensor.Tensor // their values, in the type of activations
	tokens, Positions    *Param         // positions are nil unless they are learned
	Indices, Places      *tensor.Tensor // i32 [T]: the tokens, and the position of each
	placed               *tensor.Tensor // those of Places that belong to the rows of the stream
	vectors              *tensor.Tensor // of placed, scratch [R h]
	tied                 bool           // the output layer shares the weight of tokens and has written its part of the gradient
	stream               *Stream
	parts                *tableParts // nil where this rank has the whole table
	multiplier           *multiplier // of the vectors of tokens; nil without
	dropout              *dropout
	fwd                  *opmanager.Bound[embedding.EmbeddingFwdArgs]
	bwd                  *opmanager.Bound[embedding.EmbeddingBwdArgs]
	add                  *opmanager.Bound[norm.ResidualAddArgs]
}

// Embedding makes the embedding; tied says that the output layer shares the weight of tokens.
func (b *Builder) Embedding(tokens, positions *Param, tied bool) *Embedding {
	t := b.tokens()
	e := &Embedding{
		table: b.matrix(tokens), positionTable: b.matrix(positions),
		tokens: tokens, Positions: positions, Indices: b.Keep.New(tensor.I32, t), tied: tied,
		stream: b.stream, dropout: b.dropout(),
		fwd: opmanager.MustBind(b.Fwd, embedding.EmbeddingFwd), bwd: opmanager.MustBind(b.Bwd, embedding.EmbeddingBwd),
		add: opmanager.MustBind(b.Fwd, norm.ResidualAdd),
	}
	if m := b.Config.EmbeddingMultiplier; m != 0 && m != 1 {
		e.multiplier = &multiplier{
			scale: float32(m), flag: b.Keep.New(tensor.I32, 1), lists: [][]*tensor.Tensor{{nil}, {nil}}, grad: b.scratch(t, b.Config.HiddenSize),
			fwd: opmanager.MustBind(b.Fwd, optim.MultiTensorScale), bwd: opmanager.MustBind(b.Bwd, optim.MultiTensorScale),
		}
	}
	if e.Positions != nil {
		e.Places, e.vectors = b.Keep.New(tensor.I32, t), b.Rows()
		e.placed = memory.Rows(e.Places, b.stream.first, b.stream.first+b.rows())
	}
	if b.Part.Tensor != nil {
		e.parts = b.tableParts(tokens)
	}
	return e
}

// FillPlaces writes the position of each token of a rank: its place in the row if positions, which
// are those of all tokens of the batch, is nil.
func (e *Embedding) FillPlaces(own sequence.Share, positions []int32) error {
	if e.Positions == nil {
		return nil
	}
	return tensor.Fill(e.Places, func(places []int32) {
		if positions != nil {
			copy(places, sequence.Pick(own, positions))
			return
		}
		for len(places) > 0 {
			for _, r := range own.Ranges() {
				for i := range r.Len() {
					places[i] = int32(r.Lo + i)
				}
				places = places[r.Len():]
			}
		}
	})
}

// Forward writes the vectors to y, which are rows of the stream.
func (e *Embedding) Forward(r *Run, y *tensor.Tensor) {
	if e.parts != nil {
		e.parts.forward(r, e, y)
	} else {
		Call(r, e.fwd, embedding.EmbeddingFwdArgs{Indices: e.Indices, Weight: e.table, Output: y})
	}
	e.multiplier.Forward(r, y)
	if e.Positions != nil {
		Call(r, e.fwd, embedding.EmbeddingFwdArgs{Indices: e.placed, Weight: e.positionTable, Output: e.vectors})
		Call(r, e.add, norm.ResidualAddArgs{A: y, B: e.vectors, Output: y})
	}
	e.dropout.Forward(r, y)
}

// Backward writes the gradients of the tables, given that of the stream in g.Res.
func (e *Embedding) Backward(r *Run, g *Gradients) {
	if e.tokens.Grad == nil {
		return
	}
	dy := g.whole(r, e.dropout.Backward(r, g.Res))
	tokens := e.multiplier.Backward(r, dy)
	args := embedding.EmbeddingBwdArgs{Grad: tokens, Indices: e.Indices, DWeight: e.tokens.Grad, Accumulate: r.Accumulate || e.tied}
	if e.parts != nil {
		args.Grad, args.Indices = e.parts.pick(r, tokens)
	}
	Call(r, e.bwd, args)
	if e.Positions != nil {
		Call(r, e.bwd, embedding.EmbeddingBwdArgs{Grad: dy, Indices: e.Places, DWeight: e.Positions.Grad, Accumulate: r.Accumulate})
	}
}

// multiplier multiplies vectors by a number.
type multiplier struct {
	scale    float32
	flag     *tensor.Tensor
	lists    [][]*tensor.Tensor // the operands of a call
	grad     *tensor.Tensor     // [T h]
	fwd, bwd *opmanager.Bound[optim.MultiTensorScaleArgs]
}

// Forward changes y.
func (m *multiplier) Forward(r *Run, y *tensor.Tensor) {
	if m != nil {
		m.lists[0][0], m.lists[1][0] = y, y
		Call(r, m.fwd, optim.MultiTensorScaleArgs{NoopFlag: m.flag, TensorLists: m.lists, Scale: m.scale})
	}
}

// Backward returns the gradient of what is multiplied. It does not change dy.
func (m *multiplier) Backward(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if m == nil {
		return dy
	}
	m.lists[0][0], m.lists[1][0] = dy, m.grad
	Call(r, m.bwd, optim.MultiTensorScaleArgs{NoopFlag: m.flag, TensorLists: m.lists, Scale: m.scale})
	return m.grad
}

// tableParts looks up the tokens of the part of a table that this rank has. Their vectors, put into
// the rows of the tokens among rows of zeros, are added up with those of the other ranks.
type tableParts struct {
	ranks   *world.World
	first   int            // token of the part
	last    int            // token after the part
	whole   int            // tokens of all ranks
	ids     *tensor.Tensor // i32 [T]: the rows in the part of the tokens that are in it
	at      *tensor.Tensor // i32 [T]: the rows of these tokens in the batch
	vectors *tensor.Tensor // [T h]: of these tokens
	found   int
	put     *opmanager.Bound[embedding.EmbeddingBwdArgs] // adds rows to the rows at
	take    *opmanager.Bound[embedding.EmbeddingFwdArgs]
}

func (b *Builder) tableParts(tokens *Param) *tableParts {
	t, ranks, whole := b.tokens(), b.Part.Tensor, tokens.Slice.Whole[0]
	part := Portion(whole, ranks.Rank, ranks.Ranks)
	return &tableParts{
		ranks: ranks, first: part.Lo, last: part.Hi, whole: whole,
		ids: b.Keep.New(tensor.I32, t), at: b.Keep.New(tensor.I32, t), vectors: b.Act(t, b.Config.HiddenSize),
		put: opmanager.MustBind(b.Fwd, embedding.EmbeddingBwd), take: opmanager.MustBind(b.Bwd, embedding.EmbeddingFwd),
	}
}

// find lists the tokens that are in the part.
func (p *tableParts) find(r *Run, tokens *tensor.Tensor) {
	ids, at := tensor.Data[int32](p.ids), tensor.Data[int32](p.at)
	p.found = 0
	for i, id := range tensor.Data[int32](tokens) {
		switch id := int(id); {
		case id < 0 || id >= p.whole:
			r.fail(fmt.Errorf("token %d: want an id below vocab_size %d", id, p.whole))
			return
		case id >= p.first && id < p.last:
			ids[p.found], at[p.found] = int32(id-p.first), int32(i)
			p.found++
		}
	}
}

func (p *tableParts) forward(r *Run, e *Embedding, y *tensor.Tensor) {
	p.find(r, e.Indices)
	vectors := memory.Rows(p.vectors, 0, p.found)
	Call(r, e.fwd, embedding.EmbeddingFwdArgs{Indices: memory.Rows(p.ids, 0, p.found), Weight: e.table, Output: vectors})
	all := y
	if e.stream.ranks != nil {
		all = e.stream.All
	}
	Call(r, p.put, embedding.EmbeddingBwdArgs{Grad: vectors, Indices: memory.Rows(p.at, 0, p.found), DWeight: all})
	if e.stream.ranks != nil {
		r.scatter(p.ranks, all, y)
		return
	}
	r.total(p.ranks, y)
}

// pick returns the rows of a gradient that belong to tokens in the part, and the rows of these in
// the part.
func (p *tableParts) pick(r *Run, dy *tensor.Tensor) (grad, ids *tensor.Tensor) {
	grad = memory.Rows(p.vectors, 0, p.found)
	Call(r, p.take, embedding.EmbeddingFwdArgs{Indices: memory.Rows(p.at, 0, p.found), Weight: dy, Output: grad})
	return grad, memory.Rows(p.ids, 0, p.found)
}
