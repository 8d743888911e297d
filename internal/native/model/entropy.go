package model

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// noIgnore is a target that never occurs: every token counts.
const noIgnore = -100

// BlockCrossEntropy is the cross entropy of the logits of T tokens.
type BlockCrossEntropy struct {
	Logits *tensor.Tensor // [T vocab], or the part of the vocabulary that a rank has; nil until they are needed
	Losses *tensor.Tensor // f32 [T], nats
	LSE    *tensor.Tensor // f32 [T], log Σ exp of all logits of a token

	saved *opregistry.Saved
	fwd   *opmanager.Bound[loss.CrossEntropyFwdArgs]
	bwd   *opmanager.Bound[loss.CrossEntropyBwdArgs]
	parts *vocabularyParts // nil where this rank has all of the vocabulary
}

// CrossEntropy makes the cross entropy of what an output layer with this weight computes.
func (b *Builder) CrossEntropy(head *Param) *BlockCrossEntropy {
	c := &BlockCrossEntropy{
		Losses: b.Keep.F32(b.tokens()), LSE: b.Keep.F32(b.tokens()), saved: saved(),
		fwd: opmanager.MustBind(b.Fwd, loss.CrossEntropyFwd), bwd: opmanager.MustBind(b.Bwd, loss.CrossEntropyBwd),
	}
	if b.Part.Tensor != nil {
		c.parts = b.vocabularyParts(head)
		c.Logits = memory.Columns(c.parts.all, 0, head.Shape[0])
	}
	return c
}

// Forward writes Losses and LSE.
func (c *BlockCrossEntropy) Forward(r *Run, targets *tensor.Tensor) {
	if c.parts != nil {
		c.parts.forward(r, c, targets)
		return
	}
	Call(r, c.fwd, loss.CrossEntropyFwdArgs{
		Logits: c.Logits, Targets: targets, Losses: c.Losses, LSE: c.LSE, IgnoreIndex: noIgnore, Saved: c.saved,
	})
}

// Backward replaces Logits by the gradient of Σ dLosses·losses, after Forward with the same
// targets.
func (c *BlockCrossEntropy) Backward(r *Run, targets, dLosses *tensor.Tensor) {
	logits := c.Logits
	if c.parts != nil {
		logits, targets = c.parts.columns, c.parts.column
	}
	Call(r, c.bwd, loss.CrossEntropyBwdArgs{
		Logits: logits, Targets: targets, LSE: c.LSE, DLosses: dLosses, DLogits: logits, IgnoreIndex: noIgnore, Saved: c.saved,
	})
}

// spareColumns follow the logits of a part of the vocabulary, so that rows begin on cache lines.
// The first of them is -Inf, the logit of a token that never comes.
const spareColumns = 16

// vocabularyParts makes the cross entropy of logits that several ranks share:
//
//	loss = (ln Σ_q exp(lse[q]) − lse[r]) + (lse[r] − logit[target])
//
// where lse[q] is that of the part of rank q, and r is the rank that has the target. The first term
// is a cross entropy too, of the lse of the ranks. In the gradient, a target that another rank has
// is the column of −Inf: it leaves the other columns the exponential, which is all they get.
type vocabularyParts struct {
	ranks *world.World
	whole int // tokens in the vocabulary of all ranks

	all      *tensor.Tensor // [T part+spareColumns]
	columns  *tensor.Tensor // its first part+1 columns
	own      *tensor.Tensor // i32 [T]: the column of the target, noIgnore where another rank has it
	column   *tensor.Tensor // i32 [T]: likewise, or the column of -Inf
	rank     *tensor.Tensor // i32 [T]: the rank that has it
	gathered *tensor.Tensor // f32 [ranks T]: the lse of each rank
	lse      *tensor.Tensor // the same, [T ranks], in dense rows as every impl takes them
	between  *tensor.Tensor // f32 [T]: the first term
	saved    *opregistry.Saved
	fwd      *opmanager.Bound[loss.CrossEntropyFwdArgs]
	add      *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) vocabularyParts(head *Param) *vocabularyParts {
	t, ranks := b.tokens(), b.Part.Tensor
	p := &vocabularyParts{
		ranks: ranks, whole: head.Slice.Whole[0], all: b.Act(t, head.Shape[0]+spareColumns),
		own: b.Keep.New(tensor.I32, t), column: b.Keep.New(tensor.I32, t), rank: b.Keep.New(tensor.I32, t),
		gathered: b.Keep.F32(ranks.Ranks, t), lse: b.Keep.F32(t, ranks.Ranks), between: b.Keep.F32(t), saved: saved(),
		fwd: opmanager.MustBind(b.Fwd, loss.CrossEntropyFwd), add: opmanager.MustBind(b.Fwd, norm.ResidualAdd),
	}
	p.columns = memory.Columns(p.all, 0, head.Shape[0]+1)
	return p
}

// place finds out which rank has each target, and writes the column of -Inf.
func (p *vocabularyParts) place(r *Run, targets *tensor.Tensor) {
	own, column, rank := tensor.Data[int32](p.own), tensor.Data[int32](p.column), tensor.Data[int32](p.rank)
	last := int32(p.columns.Shape().Cols() - 1)
	for i, target := range tensor.Data[int32](targets) {
		if target < 0 || int(target) >= p.whole {
			r.fail(fmt.Errorf("target %d: want an id below vocab_size %d", target, p.whole))
			return
		}
		has := PortionOf(int(target), p.whole, p.ranks.Ranks)
		at := int32(int(target) - Portion(p.whole, has, p.ranks.Ranks).Lo)
		own[i], column[i], rank[i] = noIgnore, last, int32(has)
		if has == p.ranks.Rank {
			own[i], column[i] = at, at
		}
	}
	pitch := p.all.Shape().Cols()
	switch p.all.DType() {
	case tensor.BF16:
		fill(tensor.Data[tensor.BFloat16](p.all), int(last), pitch, tensor.ToBFloat16(float32(math.Inf(-1))))
	case tensor.F16:
		fill(tensor.Data[tensor.Float16](p.all), int(last), pitch, tensor.ToFloat16(float32(math.Inf(-1))))
	case tensor.F32:
		fill(tensor.Data[float32](p.all), int(last), pitch, float32(math.Inf(-1)))
	default:
		panic("BUG: model: logits of " + p.all.DType().String())
	}
}

// fill writes v to every step-th element from the first on.
func fill[T any](to []T, first, step int, v T) {
	for i := first; i < len(to); i += step {
		to[i] = v
	}
}

// turn writes a matrix of some rows as one of so many columns.
func turn(from, to []float32, rows int) {
	columns := len(from) / rows
	for i, v := range from {
		to[i%columns*rows+i/columns] = v
	}
}

func (p *vocabularyParts) forward(r *Run, c *BlockCrossEntropy, targets *tensor.Tensor) {
	p.place(r, targets)
	Call(r, c.fwd, loss.CrossEntropyFwdArgs{
		Logits: p.columns, Targets: p.own, Losses: c.Losses, LSE: c.LSE, IgnoreIndex: noIgnore, Saved: c.saved,
	})
	r.total(p.ranks, c.Losses)
	r.gather(p.ranks, c.LSE, p.gathered)
	turn(tensor.Data[float32](p.gathered), tensor.Data[float32](p.lse), p.ranks.Ranks)
	Call(r, p.fwd, loss.CrossEntropyFwdArgs{
		Logits: p.lse, Targets: p.rank, Losses: p.between, LSE: c.LSE, IgnoreIndex: noIgnore, Saved: p.saved,
	})
	Call(r, p.add, norm.ResidualAddArgs{A: c.Losses, B: p.between, Output: c.Losses})
}
