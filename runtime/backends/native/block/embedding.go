package block

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backends/native/param"
	"github.com/primus-fl/primus/tensor"
)

// Embedding is the sum of the vectors of tokens and, if they are learned, of positions.
type Embedding struct {
	table, positionTable *tensor.Tensor // their values, in the type of activations
	tokens, Positions    *param.Param   // positions are nil unless they are learned
	Indices, Places      *tensor.Tensor // i32 [T]: the tokens, and the position of each
	vectors              *tensor.Tensor // of places, scratch [T h]
	tied                 bool           // the output layer shares the weight of tokens and has written its part of the gradient
	dropout              *dropout
	fwd                  *opmanager.Bound[embedding.EmbeddingFwdArgs]
	bwd                  *opmanager.Bound[embedding.EmbeddingBwdArgs]
	add                  *opmanager.Bound[norm.ResidualAddArgs]
}

// Embedding makes the embedding; tied says that the output layer shares the weight of tokens.
func (b *Builder) Embedding(tokens, positions *param.Param, tied bool) *Embedding {
	e := &Embedding{
		table: b.matrix(tokens), positionTable: b.matrix(positions),
		tokens: tokens, Positions: positions, Indices: b.Keep.New(tensor.I32, b.tokens()), tied: tied,
		dropout: b.dropout(),
		fwd:     opmanager.MustBind(b.Fwd, embedding.EmbeddingFwd), bwd: opmanager.MustBind(b.Bwd, embedding.EmbeddingBwd),
		add: opmanager.MustBind(b.Fwd, norm.ResidualAdd),
	}
	if e.Positions != nil {
		e.Places, e.vectors = b.Keep.New(tensor.I32, b.tokens()), b.Act(b.tokens(), b.Config.HiddenSize)
	}
	return e
}

// FillPlaces writes the position of each token: its place in the row if positions is nil.
func (e *Embedding) FillPlaces(seq int, positions []int32) {
	if e.Positions == nil {
		return
	}
	places := tensor.Data[int32](e.Places)
	if positions != nil {
		copy(places, positions)
		return
	}
	for i := range places {
		places[i] = int32(i % seq)
	}
}

// Forward writes the vectors to y.
func (e *Embedding) Forward(r *Run, y *tensor.Tensor) {
	Call(r, e.fwd, embedding.EmbeddingFwdArgs{Indices: e.Indices, Weight: e.table, Output: y})
	if e.Positions != nil {
		Call(r, e.fwd, embedding.EmbeddingFwdArgs{Indices: e.Places, Weight: e.positionTable, Output: e.vectors})
		Call(r, e.add, norm.ResidualAddArgs{A: y, B: e.vectors, Output: y})
	}
	e.dropout.Forward(r, y)
}

// Backward writes the gradients of the tables, given that of the vectors.
func (e *Embedding) Backward(r *Run, dy *tensor.Tensor) {
	if e.tokens.Grad == nil {
		return
	}
	dy = e.dropout.Backward(r, dy)
	Call(r, e.bwd, embedding.EmbeddingBwdArgs{Grad: dy, Indices: e.Indices, DWeight: e.tokens.Grad, Accumulate: r.Accumulate || e.tied})
	if e.Positions != nil {
		Call(r, e.bwd, embedding.EmbeddingBwdArgs{Grad: dy, Indices: e.Places, DWeight: e.Positions.Grad, Accumulate: r.Accumulate})
	}
}
