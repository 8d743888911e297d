package model

import (
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/tensor"
)

// Stream is the residual stream between blocks, with the memory through which it passes into and
// out of them. Where ranks share layers and divide the sequence, each has R of the T rows of the
// stream, which are collected for a block; what blocks of all ranks have computed is added up, and
// each rank takes its rows. Elsewhere R is T, and a rank adds up by itself or the block has.
type Stream struct {
	ranks *world.World // that divide the rows; nil where each has all
	first int          // of the rows of this rank

	All  *tensor.Tensor // the output of a block [T h]
	own  *tensor.Tensor // [R h]: the rows of this rank of All
	norm *tensor.Tensor // [R h]: the output of a norm, before it is collected
}

// rows is the number of rows of the stream of this rank.
func (b *Builder) rows() int {
	if b.Part.Sequence {
		return b.tokens() / b.Part.Tensor.Ranks
	}
	return b.tokens()
}

// Stream makes the memory of the stream, which layers share.
func (b *Builder) Stream() *Stream {
	h := b.Config.HiddenSize
	s := &Stream{All: b.Act(b.tokens(), h)}
	s.own = s.All
	if b.Part.Sequence {
		s.ranks, s.first = b.Part.Tensor, b.Part.Tensor.Rank*b.rows()
		s.own, s.norm = b.Act(b.rows(), h), b.Act(b.rows(), h)
	}
	b.stream = s
	return s
}

// Rows returns memory for rows of the stream of this rank.
func (b *Builder) Rows() *tensor.Tensor { return b.Act(b.rows(), b.Config.HiddenSize) }

// apart returns the stream for a block that works on the rows of this rank.
func (s *Stream) apart() *Stream { return &Stream{All: s.own, own: s.own} }

// Norm writes the norm of x, which are rows of the stream, to all rows of y. Without a norm it
// writes x, which may be y.
func (s *Stream) Norm(r *Run, n Norm, x, y *tensor.Tensor) {
	switch {
	case n == nil && s.ranks == nil:
		return
	case s.ranks == nil:
		n.Forward(r, x, y)
		return
	case n != nil:
		n.Forward(r, x, s.norm)
		x = s.norm
	}
	r.gather(s.ranks, x, y)
}

// into returns where a block writes its output, which n normalises unless it is nil.
func (s *Stream) into(n *outputNorm) *tensor.Tensor {
	if n != nil && s.ranks == nil {
		return n.in
	}
	return s.All
}

// output is Sum for a block whose output n normalises, unless it is nil.
func (s *Stream) output(r *Run, n *outputNorm) *tensor.Tensor {
	if n == nil {
		return s.Sum(r)
	}
	if s.ranks != nil {
		r.scatter(s.ranks, s.All, n.in)
	}
	n.norm.Forward(r, n.in, s.own)
	return s.own
}

// Sum adds up what the blocks of all ranks have written to All and returns the rows of this rank.
func (s *Stream) Sum(r *Run) *tensor.Tensor {
	if s.ranks != nil {
		r.scatter(s.ranks, s.All, s.own)
	}
	return s.own
}

// Gradients holds the gradients of the tensors between blocks. That of the logits overwrites the
// logits.
type Gradients struct {
	Res    *tensor.Tensor // of the residual stream [R h]
	Hidden *tensor.Tensor // of the input of a block [T h]
	Losses *tensor.Tensor // [T]

	ranks *world.World   // as in Stream
	own   *tensor.Tensor // [R h]: the rows of this rank of Hidden
	all   *tensor.Tensor // [T h]: the gradient of the output of a block
	apart *Gradients     // for a block that works on the rows of this rank; nil where each rank has all
}

// Gradients makes the gradients.
func (b *Builder) Gradients() *Gradients {
	t, h := b.tokens(), b.Config.HiddenSize
	g := &Gradients{Res: b.Rows(), Hidden: b.Act(t, h), Losses: b.Keep.F32(t)}
	g.own = g.Hidden
	if b.Part.Sequence {
		g.ranks, g.own, g.all = b.Part.Tensor, b.Rows(), b.Act(t, h)
		g.apart = &Gradients{Res: g.Res, Hidden: g.own, own: g.own}
	}
	return g
}

// whole returns all rows of a gradient of which each rank has some.
func (g *Gradients) whole(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if g.ranks == nil {
		return dy
	}
	r.gather(g.ranks, dy, g.all)
	return g.all
}

// Sum is that of Stream for Hidden.
func (g *Gradients) Sum(r *Run) *tensor.Tensor {
	if g.ranks != nil {
		r.scatter(g.ranks, g.Hidden, g.own)
	}
	return g.own
}
