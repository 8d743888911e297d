package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/random"
	"github.com/primus-fl/primus/tensor"
)

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
