package model

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/tensor"
)

// logitParts is the memory of logits that several ranks share.
type logitParts struct {
	ranks    *world.World
	whole    int            // tokens in the vocabulary of all ranks
	own      *tensor.Tensor // f32 [rows·room], of the part of this rank
	gathered *tensor.Tensor // f32 [ranks·rows·room]
}

func newLogitParts(m *Model, rows int, a *memory.Arena) *logitParts {
	p := &logitParts{ranks: m.part.Tensor, whole: m.cfg.VocabSize}
	p.own, p.gathered = a.New(tensor.F32, rows*p.room()), a.New(tensor.F32, p.ranks.Ranks*rows*p.room())
	return p
}

// room is the size of the largest part of a row.
func (p *logitParts) room() int { return (p.whole + p.ranks.Ranks - 1) / p.ranks.Ranks }

// size is that of the part of a rank.
func (p *logitParts) size(rank int) int {
	part := Portion(p.whole, rank, p.ranks.Ranks)
	return part.Hi - part.Lo
}

// own returns the memory of the logits of some rows that this rank computes: logits, or its part.
func (d *Decoder) own(rows int, logits *tensor.Tensor) *tensor.Tensor {
	p := d.parts
	if p == nil {
		return logits
	}
	n := p.size(p.ranks.Rank)
	return memory.Must(memory.Rows(p.own, 0, rows*n).Reshape(rows, n))
}

// together completes the logits [rows vocab] of all ranks, which are the same on all of them.
func (d *Decoder) together(logits *tensor.Tensor) error {
	const what = "collect the logits"
	if p := d.parts; p != nil {
		rows := logits.Shape()[0]
		each := rows * p.room()
		if err := p.ranks.GatherInto(what, memory.Rows(p.own, 0, each), memory.Rows(p.gathered, 0, p.ranks.Ranks*each)); err != nil {
			return err
		}
		to, from := tensor.Data[float32](logits), tensor.Data[float32](p.gathered)
		at := 0
		for rank := range p.ranks.Ranks {
			n := p.size(rank)
			for i := range rows {
				copy(to[i*p.whole+at:], from[rank*each+i*n:][:n])
			}
			at += n
		}
	}
	if d.m.part.Experts == nil {
		return nil
	}
	return d.m.part.Experts.Copy(what, logits) // impls may differ in the last bits
}

// softcap bounds the logits of an output layer; nil is no bound.
type softcap struct {
	limit float32
	raw   *tensor.Tensor // what the layer computes, which the gradient needs; nil without gradients
	fwd   *opmanager.Bound[activation.SoftcapArgs]
	bwd   *opmanager.Bound[activation.DSoftcapArgs]
}

// softcap makes the bound of the logits of the final layer, and keeps those of training before it.
func (b *Builder) softcap(head *Param, train bool) *softcap {
	limit := b.Config.FinalSoftcap
	if limit == 0 {
		return nil
	}
	s := &softcap{limit: float32(limit), fwd: opmanager.MustBind(b.Fwd, activation.Softcap)}
	if train {
		s.raw, s.bwd = b.Act(b.tokens(), head.Shape[0]), opmanager.MustBind(b.Bwd, activation.DSoftcap)
	}
	return s
}

// input returns what the output layer writes, given the logits.
func (s *softcap) input(logits *tensor.Tensor) *tensor.Tensor {
	if s == nil || s.raw == nil {
		return logits
	}
	return s.raw
}

// Forward writes the logits.
func (s *softcap) Forward(r *Run, logits *tensor.Tensor) {
	if s != nil {
		Call(r, s.fwd, activation.SoftcapArgs{Input: s.input(logits), Output: logits, Limit: s.limit})
	}
}

// Backward replaces the gradient of the logits by that of what the output layer computes.
func (s *softcap) Backward(r *Run, grad *tensor.Tensor) {
	if s != nil {
		Call(r, s.bwd, activation.DSoftcapArgs{Grad: grad, FwdInput: s.raw, Output: grad, Limit: s.limit})
	}
}
