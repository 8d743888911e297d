package model

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/runtime/backends/native/batch"
	"github.com/primus-fl/primus/runtime/backends/native/fp8"
	"github.com/primus-fl/primus/runtime/backends/native/layout"
	"github.com/primus-fl/primus/tensor"
)

// Pass runs a model forward and backward over batches of one size. T is
// batch·seq, h the hidden size.
type Pass struct {
	m          *Model
	memory     *arena
	batch, seq int
	check      bool // look for NaN and Inf after each op
	fresh      bool // the activations are those of the last Loss
	dropout    dropoutKey
	loss       Loss
	lossArgs   LossBatch
	weights    []float32 // memory of lossArgs.Weights
	weight     float64   // the sum of the weights of the batch
	current    run
	auxLoss    float64 // of the last forward
	held       int     // the first layer of the chunk, of those that are computed again, whose activations are in memory
	segments   documents
	places     documents // of positions

	embedding   *embedding
	targets     *tensor.Tensor // i32 [T]
	freqs       *tensor.Tensor // of rotary positions [seq 1 1 d]; nil without
	layers      []layer
	proj        *tensor.Tensor // the output of a part of a layer, which is added to the residual stream [T h]
	out, norm   *tensor.Tensor // of the last layer and of the final norm [T h]
	finalNorm   norm
	rounder     *caster
	eight       map[*Param]*fp8.Rounder // of weights in fp8
	head        linear
	logits      *tensor.Tensor // [T vocab]
	losses, lse *tensor.Tensor // [T]
	lossFwd     *opmanager.Bound[loss.CrossEntropyFwdArgs]
	lossBwd     *opmanager.Bound[loss.CrossEntropyBwdArgs]
	savedL      *opregistry.Saved
	grad        *gradients // nil for a forward-only pass
	watch       layout.Watch
}

// gradients holds the gradients of the tensors between blocks. That of the logits overwrites the
// logits.
type gradients struct {
	res    *tensor.Tensor // of the residual stream [T h]
	hidden *tensor.Tensor // of a norm's output, then of its input [T h]
	losses *tensor.Tensor // [T]
}

// NewPass allocates the activations for batches of batch sequences of seq tokens,
// and with train the buffers of the backward pass. Close returns the memory.
func (m *Model) NewPass(mgr *opmanager.Manager, batch, seq int, train bool) (*Pass, error) {
	if batch < 1 || seq < 1 || seq > m.cfg.SeqLength {
		return nil, fmt.Errorf("pass of %d sequences of %d tokens: want at least one sequence of 1 to %d tokens (seq_length)", batch, seq, m.cfg.SeqLength)
	}
	if train && m.frozen {
		return nil, errors.New("pass that trains: the model has no gradients")
	}
	p := &Pass{m: m, memory: &arena{backend: m.memory.backend}, batch: batch, seq: seq, loss: CrossEntropy()}
	p.build(mgr, train)
	if p.memory.err != nil {
		return nil, fmt.Errorf("allocate activations for %d sequences of %d tokens: %w", batch, seq, p.memory.fail())
	}
	p.embedding.fillPlaces(seq, nil)
	if p.freqs != nil {
		m.cfg.fillFreqs(p.freqs)
	}
	return p, nil
}

func (p *Pass) build(mgr *opmanager.Manager, train bool) {
	m, c, t := p.m, p.m.cfg, p.batch*p.seq
	own := &pool{arena: p.memory}
	outside := builder{cfg: m.local(), batch: p.batch, seq: p.seq, keep: own, part: m.part, rooms: new([4]layout.Room)}
	if train {
		outside.spare = &pool{arena: p.memory}
		p.grad = &gradients{res: outside.act(t, c.HiddenSize), hidden: outside.act(t, c.HiddenSize), losses: own.f32(t)}
	}
	outside.at(mgr)
	p.embedding, p.rounder = outside.embedding(m), outside.caster(mgr)
	p.roundWeights(mgr)
	p.targets, p.proj = own.new(tensor.I32, t), outside.act(t, c.HiddenSize)
	p.segments.memory, p.places.memory = own.new(tensor.I32, t+1), own.new(tensor.I32, t+1)
	p.out, p.norm, p.finalNorm = outside.act(t, c.HiddenSize), outside.act(t, c.HiddenSize), outside.norm(m.finalNorm, t)
	p.head = outside.linear(linearWeights{weight: m.head})
	p.logits, p.losses, p.lse, p.savedL = outside.act(t, c.VocabSize), own.f32(t), own.f32(t), saved()
	p.lossFwd, p.lossBwd = opmanager.MustBind(outside.fwd, loss.CrossEntropyFwd), opmanager.MustBind(outside.bwd, loss.CrossEntropyBwd)
	p.lossArgs = LossBatch{Logits: p.logits, Targets: p.targets, Losses: p.losses, LSE: p.lse, pass: p}
	if train {
		p.lossArgs.DLosses, p.lossArgs.DLogits = p.grad.losses, p.logits
	}
	if c.rotary() {
		p.freqs = own.f32(p.seq, 1, 1, c.HeadDim())
	}
	outside.wide = outside.wideInput(mgr)
	p.layers = outside.layers(m.layers, mgr, p.memory, p.freqs)
}

// Close returns the memory of the pass.
func (p *Pass) Close() error { return p.memory.close() }

// SetBatch copies a batch of the rows and the sequence length of the pass, on which the following
// passes work. A batch that Check refuses is an error.
func (p *Pass) SetBatch(b batch.Batch) error {
	if err := b.Check(p.batch, p.seq); err != nil {
		return err
	}
	tokens, targets := tensor.Data[int32](p.embedding.indices), tensor.Data[int32](p.targets)
	for i := range p.batch {
		row := b.Tokens[i*(p.seq+1):]
		copy(tokens[i*p.seq:(i+1)*p.seq], row[:p.seq])
		copy(targets[i*p.seq:(i+1)*p.seq], row[1:p.seq+1])
	}
	p.lossArgs.Weights = nil
	if b.Weights != nil {
		p.weights = append(p.weights[:0], b.Weights...)
		p.lossArgs.Weights = p.weights
	}
	p.weight, p.lossArgs.Batch = b.Weight(), b
	p.setDocuments(b)
	return nil
}

// CheckFinite makes the pass look for NaN and Inf after each op, to name the first op at fault. It
// is slow.
func (p *Pass) CheckFinite(on bool) { p.check = on }

// Loss runs the model over the batch and returns the loss: with cross entropy, the weighted mean in
// nats per token, and 0 if no token counts.
func (p *Pass) Loss() (float64, error) {
	r := p.run()
	p.forward(r)
	loss, err := p.lossForward(r)
	p.memory.guards.check()
	p.fresh = err == nil && p.grad != nil
	return loss, err
}

// AuxLoss returns the sum of the auxiliary losses of the layers in the last Loss. The value that
// Loss returns does not include it.
func (p *Pass) AuxLoss() float64 { return p.auxLoss }

// Logits runs the model over tokens of one sequence, padded to the length of the pass, and returns
// the scores of the token that follows position at. The slice is valid until the next call.
func (p *Pass) Logits(tokens []int32, at int) ([]float32, error) {
	p.setDocuments(batch.Batch{})
	input := tensor.Data[int32](p.embedding.indices)
	clear(input)
	copy(input, tokens)
	r := p.run()
	p.forward(r)
	if r.err != nil {
		return nil, r.err
	}
	vocab := p.m.cfg.VocabSize
	if p.logits.DType() == tensor.F32 {
		return tensor.Data[float32](p.logits)[at*vocab : (at+1)*vocab], nil
	}
	scores := make([]float32, vocab)
	for i, v := range rows(p.logits, at, at+1).Float64s() {
		scores[i] = float32(v)
	}
	return scores, nil
}

func (p *Pass) forward(r *run) {
	p.fresh = false
	p.held = p.m.cfg.LastChunk(p.m.cfg.NumLayers)
	r.leave("embedding")
	p.needs(r, 0)
	p.embedding.forward(r, p.layers[0].in)
	for i := range p.layers {
		p.needs(r, i+1)
		next := p.out
		if i+1 < len(p.layers) {
			next = p.layers[i+1].in
		}
		p.layers[i].forward(r, i, p.proj, next)
	}
	r.leave("final norm")
	p.needs(r, len(p.layers)+1)
	p.finalNorm.forward(r, p.out, p.norm)
	r.leave("output layer")
	p.head.forward(r, p.norm, p.logits)
	p.auxLoss = r.auxLoss
}

// needs makes the weights of a depth ready.
func (p *Pass) needs(r *run, depth int) {
	if r.err == nil {
		r.err = p.watch.Need(depth)
	}
	p.round(r, depth)
}

// final says that the gradients of a depth and above are final.
func (p *Pass) final(r *run, depth int) {
	if r.err == nil {
		p.watch.Finish(depth)
	}
}

// Backward runs the gradient of scale·Σ weight·(loss + auxiliary loss) over the tokens of the batch
// of the last Loss. It writes the gradients of all weights, or adds to them with accumulate. It
// overwrites activations, so each Backward needs a Loss of its own.
func (p *Pass) Backward(scale float32, accumulate bool) error {
	if !p.fresh {
		return errors.New("backward: the activations are used up or were never computed; run Loss first")
	}
	p.fresh = false
	g := p.grad
	r := p.run()
	r.accumulate, r.auxScale = accumulate, scale*float32(p.weight)
	p.lossBackward(r, scale)
	r.leave("output layer")
	p.head.backward(r, p.norm, p.logits, g.hidden)
	r.leave("final norm")
	p.finalNorm.backward(r, p.out, g.hidden, g.res)
	p.final(r, len(p.layers)+1)
	for i := len(p.layers) - 1; i >= 0; i-- {
		p.restore(r, i)
		p.layers[i].backward(r, i, g)
		p.final(r, i+1)
	}
	r.leave("embedding")
	p.embedding.backward(r, g.res)
	p.final(r, 0)
	p.memory.guards.check()
	return r.err
}
