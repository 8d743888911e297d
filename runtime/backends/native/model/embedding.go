package model

import (
	"github.com/primus-fl/primus/opmanager"
	embeddingops "github.com/primus-fl/primus/ops/embedding"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// embedding is the sum of the vectors of tokens and, if they are learned, of positions.
type embedding struct {
	table, positionTable *tensor.Tensor // their values, in the type of activations
	tokens, positions    *Param         // positions are nil unless they are learned
	indices, places      *tensor.Tensor // i32 [T]: the tokens, and the position of each
	vectors              *tensor.Tensor // of places, scratch [T h]
	tied                 bool           // the output layer shares the weight of tokens and has written its part of the gradient
	dropout              *dropout
	fwd                  *opmanager.Bound[embeddingops.EmbeddingFwdArgs]
	bwd                  *opmanager.Bound[embeddingops.EmbeddingBwdArgs]
	add                  *opmanager.Bound[normops.ResidualAddArgs]
}

func (b *builder) embedding(m *Model) *embedding {
	e := &embedding{
		table: b.matrix(m.embedding), positionTable: b.matrix(m.positions),
		tokens: m.embedding, positions: m.positions, indices: b.keep.new(tensor.I32, b.tokens()), tied: m.head == m.embedding,
		dropout: b.dropout(),
		fwd:     opmanager.MustBind(b.fwd, embeddingops.EmbeddingFwd), bwd: opmanager.MustBind(b.bwd, embeddingops.EmbeddingBwd),
		add: opmanager.MustBind(b.fwd, normops.ResidualAdd),
	}
	if e.positions != nil {
		e.places, e.vectors = b.keep.new(tensor.I32, b.tokens()), b.act(b.tokens(), b.cfg.HiddenSize)
	}
	return e
}

// fillPlaces writes the position of each token: its place in the row if positions is nil.
func (e *embedding) fillPlaces(seq int, positions []int32) {
	if e.positions == nil {
		return
	}
	places := tensor.Data[int32](e.places)
	if positions != nil {
		copy(places, positions)
		return
	}
	for i := range places {
		places[i] = int32(i % seq)
	}
}

func (e *embedding) forward(r *run, y *tensor.Tensor) {
	call(r, e.fwd, embeddingops.EmbeddingFwdArgs{Indices: e.indices, Weight: e.table, Output: y})
	if e.positions != nil {
		call(r, e.fwd, embeddingops.EmbeddingFwdArgs{Indices: e.places, Weight: e.positionTable, Output: e.vectors})
		call(r, e.add, normops.ResidualAddArgs{A: y, B: e.vectors, Output: y})
	}
	e.dropout.forward(r, y)
}

func (e *embedding) backward(r *run, dy *tensor.Tensor) {
	if e.tokens.Grad == nil {
		return
	}
	dy = e.dropout.backward(r, dy)
	call(r, e.bwd, embeddingops.EmbeddingBwdArgs{Grad: dy, Indices: e.indices, DWeight: e.tokens.Grad, Accumulate: r.accumulate || e.tied})
	if e.positions != nil {
		call(r, e.bwd, embeddingops.EmbeddingBwdArgs{Grad: dy, Indices: e.places, DWeight: e.positions.Grad, Accumulate: r.accumulate})
	}
}
