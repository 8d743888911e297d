package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	embeddingops "github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/tensor"
)

// DecoderSettings are the sizes of a Decoder.
type DecoderSettings struct {
	Slots    int // sequences at the same time
	Capacity int // tokens of each sequence, at most; 0 means seq_length
	Rows     int // tokens of a call of Step, at most; 0 means 256, or all that fit in the slots
}

// resolved returns the sizes without defaults.
func (s DecoderSettings) resolved(c architecture.Config) DecoderSettings {
	s.Capacity = cmp.Or(s.Capacity, c.SeqLength)
	s.Rows = cmp.Or(s.Rows, min(256, s.Slots*s.Capacity))
	return s
}

// Decoder continues sequences of tokens. It keeps the keys and values of the tokens so far, so that
// a token is computed once. Each sequence has a slot of the cache. A Decoder is used by one
// goroutine at a time. Where ranks have parts of a model, each has a Decoder, and all make the same
// calls and get the same logits.
type Decoder struct {
	m        *Model
	mgr      *opmanager.Manager
	settings DecoderSettings
	memory   *memory.Arena
	cache    *KVCache
	plan     *stepPlan
	angles   angles
	logits   *tensor.Tensor // f32 [rows vocab]
	parts    *logitParts    // nil where this rank has the whole vocabulary
	rounder  *rounder
	passes   map[int]*decoderPass
	lengths  []int
	current  Run
}

// NewDecoder allocates a cache for sequences and the activations of a step. Close returns the
// memory.
func (m *Model) NewDecoder(mgr *opmanager.Manager, s DecoderSettings) (*Decoder, error) {
	c := m.cfg
	if m.part.Stretches != nil {
		return nil, errors.New("decoder: the model is a stage of a pipeline, want a whole one")
	}
	s = s.resolved(c)
	if s.Slots < 1 || s.Rows < s.Slots || s.Capacity < 1 {
		return nil, fmt.Errorf("decoder of %d sequences of %d tokens, %d in a step: want at least one sequence and a token of each in a step", s.Slots, s.Capacity, s.Rows)
	}
	if c.LearnedPositions() && s.Capacity > c.Positions() {
		return nil, fmt.Errorf("decoder for sequences of %d tokens: the model has a table of %d positions", s.Capacity, c.Positions())
	}
	d := m.decoder(mgr, s, m.memory.Backend)
	if err := d.memory.Err; err != nil {
		return nil, fmt.Errorf("allocate the cache of %d sequences of %d tokens: %w", s.Slots, s.Capacity, d.memory.Fail())
	}
	if err := d.angles.fill(c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// decoder allocates a decoder, whose memory has an error if that fails.
func (m *Model) decoder(mgr *opmanager.Manager, s DecoderSettings, backend device.Backend) *Decoder {
	c := m.local()
	a := &memory.Arena{Backend: backend}
	d := &Decoder{m: m, mgr: mgr, settings: s, memory: a, passes: map[int]*decoderPass{}, lengths: make([]int, s.Slots)}
	d.plan, d.cache = newStepPlan(s, a)
	for range c.NumLayers {
		d.cache.Keys = append(d.cache.Keys, a.New(c.Compute(), s.Slots, s.Capacity, c.Groups(), c.HeadDim()))
		d.cache.Values = append(d.cache.Values, a.New(c.Compute(), s.Slots, s.Capacity, c.Groups(), c.HeadDim()))
	}
	d.angles = newAngles(c, s.Capacity, func(shape ...int) *tensor.Tensor { return a.New(tensor.F32, shape...) })
	d.logits = a.New(tensor.F32, s.Rows, c.VocabSize)
	if m.part.Tensor != nil {
		d.parts = newLogitParts(m, s.Rows, a)
	}
	outside := Builder{Config: c, Keep: &memory.Pool{Arena: a}}
	d.rounder = m.rounder(mgr, &outside, a)
	return d
}

// Settings returns the sizes, without defaults.
func (d *Decoder) Settings() DecoderSettings { return d.settings }

// Close returns the memory.
func (d *Decoder) Close() error { return d.memory.Close() }

// Length returns the number of tokens of the sequence in a slot.
func (d *Decoder) Length(slot int) int { return d.lengths[slot] }

// Truncate forgets the tokens of a slot from position n on. A sequence begins with Truncate(slot,
// 0).
func (d *Decoder) Truncate(slot, n int) { d.lengths[slot] = min(d.lengths[slot], n) }

// Chunk is the next tokens of a sequence.
type Chunk struct {
	Slot   int
	Tokens []int32
	From   int // logits are wanted of the tokens from this one on
}

// Step appends chunks to their sequences. It returns the logits [n vocab] after the tokens for
// which they are wanted, chunk after chunk; they are valid until the next Step. Chunks have
// ascending slots. Ids are below vocab_size. After an error the sequences have their old lengths.
func (d *Decoder) Step(chunks []Chunk) (*tensor.Tensor, error) {
	rowsUsed, wanted, err := d.place(chunks)
	if err != nil {
		return nil, err
	}
	p, err := d.pass(rowsUsed)
	if err != nil {
		return nil, err
	}
	if err := p.fill(d, chunks); err != nil {
		return nil, err
	}
	d.current = Run{Index: -1}
	r := &d.current
	for depth := range d.m.rounded {
		d.rounder.round(r, depth)
	}
	logits := memory.Rows(d.logits, 0, wanted)
	p.forward(r, d, wanted, d.own(wanted, logits))
	if r.Err == nil && wanted > 0 {
		r.Err = d.together(logits)
	}
	d.memory.Check()
	if r.Err != nil {
		return nil, r.Err
	}
	for _, c := range chunks {
		d.lengths[c.Slot] += len(c.Tokens)
	}
	return logits, nil
}

// place describes the chunks to the ops and returns the number of tokens and that of wanted logits.
func (d *Decoder) place(chunks []Chunk) (used, wanted int, err error) {
	c, plan := d.cache, d.plan
	next := 0
	for slot := range c.Slots {
		fresh := 0
		if next < len(chunks) && chunks[next].Slot == slot {
			chunk := chunks[next]
			next++
			if fresh = len(chunk.Tokens); d.lengths[slot]+fresh > c.Capacity {
				return 0, 0, fmt.Errorf("sequence of %d tokens in slot %d: want at most %d", d.lengths[slot]+fresh, slot, c.Capacity)
			}
			if used+fresh > d.settings.Rows {
				return 0, 0, fmt.Errorf("step of more than %d tokens", d.settings.Rows)
			}
			if i := slices.IndexFunc(chunk.Tokens, func(id int32) bool { return id < 0 || int(id) >= d.m.cfg.VocabSize }); i >= 0 {
				return 0, 0, fmt.Errorf("token %d: want an id below vocab_size %d", chunk.Tokens[i], d.m.cfg.VocabSize)
			}
			for i := max(chunk.From, 0); i < fresh; i++ {
				plan.chosen[wanted] = int32(used + i)
				wanted++
			}
			used += fresh
		}
		plan.starts[slot] = int32(d.lengths[slot])
		plan.newEnds[slot+1], plan.rowEnds[slot+1] = int32(used), int32(used)
		plan.lengthEnds[slot+1] = plan.lengthEnds[slot] + int32(d.lengths[slot]+fresh)
	}
	if next < len(chunks) {
		return 0, 0, fmt.Errorf("chunk of slot %d: want ascending slots below %d", chunks[next].Slot, c.Slots)
	}
	if used == 0 {
		return 0, 0, fmt.Errorf("step without tokens")
	}
	return used, wanted, nil
}

// decoderPass runs the model over some number of rows, of which the last ones may be unused.
type decoderPass struct {
	rows      int
	embedding *Embedding
	layers    []Layer
	out, norm *tensor.Tensor // [rows h]
	picked    *tensor.Tensor // [rows h]: the rows of norm whose logits are wanted
	finalNorm Norm
	head      Linear
	softcap   *softcap // of the logits
	pick      *opmanager.Bound[embeddingops.EmbeddingFwdArgs]
}

// pass returns a pass for at least n rows. Up to eight rows, which is what generation takes, none
// are unused.
func (d *Decoder) pass(n int) (*decoderPass, error) {
	size := n
	for size > 8 && size&(size-1) != 0 {
		size++
	}
	size = min(size, max(d.settings.Rows, n))
	if p := d.passes[size]; p != nil {
		return p, nil
	}
	p := d.build(size)
	if d.memory.Err != nil {
		return nil, fmt.Errorf("allocate activations for %d tokens: %w", size, d.memory.Err)
	}
	d.passes[size] = p
	return p, nil
}

func (d *Decoder) build(n int) *decoderPass {
	c := d.m.local()
	c.AuxLossCoeff, c.HiddenDropout, c.AttentionDropout = 0, 0, 0
	own := &memory.Pool{Arena: d.memory}
	part := d.m.part
	part.Sequence, part.Context, part.Rows = false, nil, nil // there are few rows
	b := Builder{Config: c, Batch: 1, Seq: n, Keep: own, Cache: d.cache, Scales: d.m.scales, Part: part, RowBuffers: new([4]RowBuffer)}
	b.At(d.mgr)
	b.Stream()
	p := &decoderPass{
		rows: n, embedding: b.Embedding(d.m.embedding, d.m.positions, !d.m.cfg.Untie), out: b.Act(n, c.HiddenSize), norm: b.Act(n, c.HiddenSize),
		picked: b.Act(n, c.HiddenSize), finalNorm: b.StreamNorm(d.m.finalNorm), head: b.Linear(LinearWeights{Weight: d.m.head}), softcap: b.softcap(d.m.head, false),
		pick: opmanager.MustBind(b.Fwd, embeddingops.EmbeddingFwd),
	}
	b.ShareWide(d.mgr)
	p.layers = b.Layers(d.m.layers, 0, d.mgr, d.memory, d.angles)
	return p
}

// fill writes the tokens and their positions, and what place has planned.
func (p *decoderPass) fill(d *Decoder, chunks []Chunk) error {
	d.plan.rowEnds[d.settings.Slots+1] = int32(p.rows)
	err := errors.Join(d.plan.send(), tensor.Fill(p.embedding.Indices, func(tokens []int32) {
		for _, c := range chunks {
			tokens = tokens[copy(tokens, c.Tokens):]
		}
		clear(tokens)
	}))
	if p.embedding.Positions == nil {
		return err
	}
	return errors.Join(err, tensor.Fill(p.embedding.Places, func(places []int32) {
		for _, c := range chunks {
			for i := range c.Tokens {
				places[i] = int32(d.lengths[c.Slot] + i)
			}
			places = places[len(c.Tokens):]
		}
		clear(places)
	}))
}

func (p *decoderPass) forward(r *Run, d *Decoder, wanted int, logits *tensor.Tensor) {
	r.Leave("embedding")
	p.embedding.Forward(r, p.layers[0].In)
	for i := range p.layers {
		next := p.out
		if i+1 < len(p.layers) {
			next = p.layers[i+1].In
		}
		p.layers[i].Forward(r, i, next)
	}
	if wanted == 0 {
		return
	}
	r.Leave("final norm")
	p.finalNorm.Forward(r, p.out, p.norm)
	r.Leave("output layer")
	picked := p.norm
	if wanted < p.rows {
		picked = memory.Rows(p.picked, 0, wanted)
		Call(r, p.pick, embeddingops.EmbeddingFwdArgs{Indices: memory.Rows(d.plan.chosenRows, 0, wanted), Weight: p.norm, Output: picked})
	}
	p.head.Forward(r, picked, logits)
	p.softcap.Forward(r, logits)
}
