package model

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/sequence"
	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// Pass runs a model forward and backward over batches of one size. T is
// batch·seq, h the hidden size.
type Pass struct {
	m          *Model
	stretch    Stretch
	memory     *memory.Arena
	batch, seq int
	share      sequence.Share // of the tokens of a row
	context    *contextPlan   // nil where this rank has all of them
	check      bool           // look for NaN and Inf after each op
	fresh      bool           // the activations are those of the last Loss
	dropout    DropoutKey
	loss       Loss
	lossArgs   LossBatch
	weights    []float32 // memory of lossArgs.Weights
	weight     float64   // the sum of the weights of the batch
	ownWeight  float64   // that of the tokens of this rank
	current    Run
	auxLoss    float64 // of the last forward
	held       int     // the first layer of the chunk, of those that are computed again, whose activations are in memory
	segments   documents
	places     documents // of positions

	embedding *Embedding     // nil where another stage has it
	targets   *tensor.Tensor // i32 [T]
	angles    angles
	layers    []Layer
	stream    *Stream
	in, out   *tensor.Tensor // before the first layer and after the last one, rows of the stream
	rounder   *rounder
	grad      *Gradients // nil for a forward-only pass
	watch     Watch

	// Of the last stage.
	norm      *tensor.Tensor // of the final norm [T h]
	finalNorm Norm
	head      Linear
	softcap   *softcap // of the logits
	entropy   *BlockCrossEntropy
	linear    *linearEntropy // in place of both where no logits are kept, as long as the loss is CrossEntropy

	apart        bool // gradients of weights may be computed later
	later        []postponed
	mark         Marker
	updateScales *opmanager.Bound[quant.FusedAmaxAndScaleUpdateArgs] // with delayed scaling
}

// NewPass allocates the activations for batches of batch sequences of seq tokens,
// and with train the buffers of the backward pass. Close returns the memory.
func (m *Model) NewPass(mgr *opmanager.Manager, batch, seq int, train bool) (*Pass, error) {
	if m.part.Stretches != nil {
		return nil, errors.New("pass: the model is a stage of a pipeline, want one of its stretches")
	}
	return m.newPass(mgr, 0, batch, seq, train, false)
}

func (m *Model) newPass(mgr *opmanager.Manager, stretch, batch, seq int, train, apart bool) (*Pass, error) {
	if batch < 1 || seq < 1 || seq > m.cfg.SeqLength {
		return nil, fmt.Errorf("pass of %d sequences of %d tokens: want at least one sequence of 1 to %d tokens (seq_length)", batch, seq, m.cfg.SeqLength)
	}
	if train && m.frozen {
		return nil, errors.New("pass that trains: the model has no gradients")
	}
	if n := m.part.Tensor; m.part.Sequence && batch*m.part.share(seq).Tokens()%n.Ranks != 0 {
		return nil, fmt.Errorf("pass of %d sequences of %d tokens: want a multiple of %d tokens, of which each rank has a part (sequence_parallel)", batch, seq, n.Ranks*m.part.contextRanks())
	}
	if err := sequence.Validate(seq, m.part.contextRanks()); err != nil {
		return nil, err
	}
	p := &Pass{m: m, stretch: m.stretch(stretch), apart: apart, memory: &memory.Arena{Backend: m.memory.Backend}, batch: batch, seq: seq, loss: CrossEntropy()}
	p.build(mgr, train)
	if p.memory.Err != nil {
		return nil, fmt.Errorf("allocate activations for %d sequences of %d tokens: %w", batch, seq, p.memory.Fail())
	}
	var err error
	if p.embedding != nil {
		err = p.embedding.FillPlaces(m.part.share(seq), nil)
	}
	if err == nil {
		err = p.angles.fill(m.cfg)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pass) build(mgr *opmanager.Manager, train bool) {
	p.share = p.m.part.share(p.seq)
	m, c, t := p.m, p.m.cfg, p.batch*p.share.Tokens()
	own := &memory.Pool{Arena: p.memory}
	if m.part.Context != nil {
		p.context = &contextPlan{share: p.share, batch: p.batch}
	}
	outside := Builder{Config: m.local(), Batch: p.batch, Seq: p.share.Tokens(), Keep: own, Part: m.part, context: p.context, RowBuffers: new([4]RowBuffer), Apart: p.apart}
	if train {
		outside.Spare = &memory.Pool{Arena: p.memory}
		p.grad = outside.Gradients()
	}
	outside.At(mgr)
	p.stream = outside.Stream()
	if p.stretch.First {
		p.embedding = outside.Embedding(m.embedding, m.positions, m.head == m.embedding)
	}
	p.rounder = m.rounder(mgr, &outside, p.memory)
	outside.Scales = m.scales
	if m.scales != nil {
		p.updateScales = opmanager.MustBind(outside.Bwd, quant.FusedAmaxAndScaleUpdateAfterReduction)
	}
	p.segments.memory, p.places.memory = own.New(tensor.I32, t+1), own.New(tensor.I32, t+1)
	p.out = outside.Rows()
	if p.stretch.Last {
		p.targets = own.New(tensor.I32, t)
		p.norm, p.finalNorm = outside.Act(t, c.HiddenSize), outside.StreamNorm(m.finalNorm)
		p.head, p.entropy = outside.Linear(LinearWeights{Weight: m.head, Shared: m.part.Tensor}), outside.CrossEntropy(m.head)
		p.softcap = outside.softcap(m.head, train)
		outside.postpone(&p.head, nil)
		e := p.entropy
		p.lossArgs = LossBatch{Targets: p.targets, Losses: e.Losses, LSE: e.LSE, pass: p}
		if train {
			p.lossArgs.DLosses = p.grad.Losses
		}
		if p.linear = outside.linearEntropy(p.norm, &p.head); p.linear == nil {
			p.keepLogits()
		}
	}
	p.angles = newAngles(c, p.seq, own.F32)
	outside.ShareWide(mgr)
	outside.skip(p.stretch)
	at := p.stretch.Layers
	p.layers = outside.Layers(m.layers[at.Lo:at.Hi], at.Lo, mgr, p.memory, p.angles)
	if p.in = p.out; len(p.layers) > 0 {
		p.in = p.layers[0].In
	}
}

// keepLogits gives the logits memory, if they have none yet.
func (p *Pass) keepLogits() {
	b, e := &p.lossArgs, p.entropy
	if e.Logits == nil {
		e.Logits = p.memory.New(p.m.cfg.Compute(), p.batch*p.share.Tokens(), p.m.head.Shape[0])
	}
	if b.Logits = e.Logits; p.grad != nil {
		b.DLogits = e.Logits
	}
}

// linearLoss reports whether the loss is computed without logits.
func (p *Pass) linearLoss() bool { return p.linear != nil && p.loss.linear }

// Close returns the memory of the pass.
func (p *Pass) Close() error { return p.memory.Close() }

// OnDevice reports whether the pass works in memory that the processor cannot access.
func (p *Pass) OnDevice() bool { return !p.out.OnHost() }

// SetBatch copies a batch of the rows and the sequence length of the pass, on which the following
// passes work. A batch that Check refuses is an error.
func (p *Pass) SetBatch(b Batch) error {
	if err := b.Check(p.batch, p.seq); err != nil {
		return err
	}
	// The tokens of a row begin with its first one, its targets with its second one.
	indices := (*tensor.Tensor)(nil)
	if p.embedding != nil {
		indices = p.embedding.Indices
	}
	for first, t := range []*tensor.Tensor{indices, p.targets} {
		if t == nil {
			continue
		}
		err := tensor.Fill(t, func(tokens []int32) {
			for i := range p.batch {
				row := b.Tokens[i*(p.seq+1)+first:]
				for _, r := range p.share.Ranges() {
					tokens = tokens[copy(tokens, row[r.Lo:r.Hi]):]
				}
			}
		})
		if err != nil {
			return err
		}
	}
	p.lossArgs.Weights = nil
	p.weight, p.lossArgs.Batch = b.Weight(), b
	p.ownWeight = p.weight / float64(p.share.Ranks)
	if b.Weights != nil {
		p.weights = append(p.weights[:0], sequence.Pick(p.share, b.Weights)...)
		p.lossArgs.Weights, p.ownWeight = p.weights, Batch{Weights: p.weights}.Weight()
	}
	return p.setDocuments(b)
}

// Weight returns the sum of the weights of the targets of this rank in the batch, which the loss is
// a mean of.
func (p *Pass) Weight() float64 { return p.ownWeight }

// CheckFinite makes the pass look for NaN and Inf after each op, to name the first op at fault. It
// is slow.
func (p *Pass) CheckFinite(on bool) { p.check = on }

// Loss runs the model over the batch and returns the loss: with cross entropy, the weighted mean in
// nats per token, and 0 if no token counts. Before the last stage of a pipeline, the result is 0.
func (p *Pass) Loss() (float64, error) {
	r := p.run()
	p.forward(r)
	loss, err := p.lossForward(r)
	p.computed(err)
	return loss, err
}

// QueueCrossEntropy does what SetBatch, and Loss with the loss CrossEntropy do, and leaves it to
// wait to return the loss. Until then nothing waits for a device, and Backward may come first.
func (p *Pass) QueueCrossEntropy(b Batch) (wait func() (float64, error), err error) {
	if err := p.SetBatch(b); err != nil {
		return nil, err
	}
	p.loss = CrossEntropy()
	r := p.run()
	p.forward(r)
	r.Leave("loss")
	if err = r.Err; err == nil {
		wait, err = p.lossArgs.crossEntropy()
	}
	p.computed(err)
	return wait, err
}

// computed notes that the activations are those of the batch, unless there was an error.
func (p *Pass) computed(err error) {
	p.memory.Check()
	p.fresh = err == nil && p.grad != nil
}

// AuxLoss returns the sum of the auxiliary losses of the layers in the last Loss. The value that
// Loss returns does not include it.
func (p *Pass) AuxLoss() float64 { return p.auxLoss }

func (p *Pass) forward(r *Run) {
	p.fresh = false
	p.held = p.m.cfg.LastChunk(len(p.layers))
	first := p.stretch.Layers.Lo
	if p.embedding != nil {
		r.Leave("embedding")
		p.needs(r, 0)
		p.embedding.Forward(r, p.in)
	}
	for i := range p.layers {
		p.needs(r, first+i+1)
		next := p.out
		if i+1 < len(p.layers) {
			next = p.layers[i+1].In
		}
		p.layers[i].Forward(r, first+i, next)
	}
	p.auxLoss = r.AuxLoss
	if !p.stretch.Last {
		return
	}
	r.Leave("final norm")
	p.needs(r, first+len(p.layers)+1)
	p.stream.Norm(r, p.finalNorm, p.out, p.norm)
	if p.linearLoss() {
		return
	}
	r.Leave("output layer")
	p.logits(r)
}

// logits writes the logits.
func (p *Pass) logits(r *Run) {
	if p.keepLogits(); p.memory.Err != nil {
		r.Err = fmt.Errorf("allocate the logits: %w", p.memory.Err)
		return
	}
	p.head.Forward(r, p.norm, p.softcap.input(p.entropy.Logits))
	p.softcap.Forward(r, p.entropy.Logits)
}

// needs makes the weights of a depth ready.
func (p *Pass) needs(r *Run, depth int) {
	if r.Err == nil {
		r.Err = p.watch.Need(depth)
	}
	p.rounder.round(r, depth)
}

// final says that the gradients of a depth and above are final.
func (p *Pass) final(r *Run, depth int) {
	if r.Err == nil {
		p.watch.Finish(depth)
	}
}

// Backward runs the gradient of scale·Σ weight·(loss + auxiliary loss) over the tokens of the batch
// of the last Loss. It writes the gradients of all weights, or adds to them with accumulate. It
// overwrites activations, so each Backward needs a Loss of its own. Before the last stage of a
// pipeline, it begins with the gradient of the residual stream in Gradient.
func (p *Pass) Backward(scale float32, accumulate bool) error {
	return p.backward(scale, accumulate, nil)
}

func (p *Pass) backward(scale float32, accumulate bool, later *[]postponed) error {
	if !p.fresh {
		return errors.New("backward: the activations are used up or were never computed; run Loss first")
	}
	p.fresh = false
	g := p.grad
	r := p.run()
	r.Accumulate, r.AuxScale, r.later = accumulate, scale*float32(p.weight), later
	first := p.stretch.Layers.Lo
	if p.stretch.Last {
		if r.Leave("loss"); p.linearLoss() {
			p.linear.backward(r, p, scale)
		} else {
			p.lossBackward(r, scale)
			r.Leave("output layer")
			p.softcap.Backward(r, p.entropy.Logits)
			p.head.Backward(r, p.norm, p.entropy.Logits, g.Hidden)
		}
		r.Leave("final norm")
		p.finalNorm.Backward(r, p.out, g.Sum(r), g.Res)
		p.final(r, first+len(p.layers)+1)
	}
	for i := len(p.layers) - 1; i >= 0; i-- {
		p.restore(r, i)
		p.layers[i].Backward(r, first+i, g)
		p.final(r, first+i+1)
	}
	if p.embedding != nil {
		r.Leave("embedding")
		p.embedding.Backward(r, g)
		p.final(r, 0)
	}
	p.memory.Check()
	return r.Err
}

// run begins a forward or backward pass. Only one may run at a time.
func (p *Pass) run() *Run {
	p.current = Run{Index: -1, Check: p.check, Dropout: p.dropout, Segments: p.segments.starts, Places: p.places.starts, Starts: p.context.positions(), mark: p.mark}
	return &p.current
}

// Mark makes following passes tell m which op they call.
func (p *Pass) Mark(m Marker) { p.mark = m }

// Drop makes following passes apply the dropout of the configuration, with random numbers that
// depend on a seed and the number of the batch.
func (p *Pass) Drop(seed, batch uint64) {
	words := random.Philox4x32([4]uint32{uint32(batch), uint32(batch >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	p.dropout = DropoutKey{On: true, Key: uint64(words[0]) | uint64(words[1])<<32}
}

// KeepAll turns off dropout for following passes. It is off in a new Pass.
func (p *Pass) KeepAll() { p.dropout = DropoutKey{} }

// restore computes the activations of a layer and of those before it in its chunk again, unless
// they are those of the last forward.
func (p *Pass) restore(r *Run, layer int) {
	first, end := p.m.cfg.Chunk(layer, len(p.layers))
	if end != layer+1 || p.held == first {
		return
	}
	p.held = first
	for i := first; i < end; i++ {
		var next *tensor.Tensor
		if i+1 < end {
			next = p.layers[i+1].In
		}
		p.layers[i].Forward(r, p.stretch.Layers.Lo+i, next)
	}
}
