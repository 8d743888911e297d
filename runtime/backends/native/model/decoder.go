package model

import (
	"fmt"
	"slices"

	"github.com/primus-fl/primus/opmanager"
	attentionops "github.com/primus-fl/primus/ops/attention"
	embeddingops "github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/tensor"
)

// DecoderSettings are the sizes of a Decoder.
type DecoderSettings struct {
	Slots    int // sequences at the same time
	Capacity int // tokens of each sequence, at most; 0 means seq_length
	Rows     int // tokens of a call of Step, at most; 0 means 256
}

// Decoder continues sequences of tokens. It keeps the keys and values of the tokens so far, so that
// a token is computed once. Each sequence has a slot of the cache. A Decoder is used by one
// goroutine at a time.
type Decoder struct {
	m        *Model
	mgr      *opmanager.Manager
	settings DecoderSettings
	memory   *arena
	cache    *kvCache
	freqs    *tensor.Tensor // [capacity 1 1 d]; nil without rotary positions
	chosen   *tensor.Tensor // i32 [rows]: the rows whose logits are wanted
	logits   *tensor.Tensor // [rows vocab]
	passes   map[int]*decoderPass
	lengths  []int
	current  run
}

// kvCache holds the keys and values of the sequences of a Decoder and describes the rows of a step.
type kvCache struct {
	slots, capacity int
	keys, values    []*tensor.Tensor // of each layer [slots capacity groups d]
	table           *tensor.Tensor   // i32 [slots 1]: every sequence stays in its slot
	newEnds         *tensor.Tensor   // i32 [slots+1]: cumulative numbers of new tokens
	lengthEnds      *tensor.Tensor   // i32 [slots+1]: cumulative lengths, with the new tokens
	firsts          *tensor.Tensor   // i32 [slots+1]: the first row of each slot
	rowEnds         *tensor.Tensor   // i32 [slots+2]: newEnds, and then the end of the unused rows
	starts          *tensor.Tensor   // i32 [slots+1]: the position of the first new token; 0 for unused rows
}

// NewDecoder allocates a cache for sequences and the activations of a step. Close returns the
// memory.
func (m *Model) NewDecoder(mgr *opmanager.Manager, s DecoderSettings) (*Decoder, error) {
	c := m.cfg
	if s.Capacity == 0 {
		s.Capacity = c.SeqLength
	}
	if s.Rows == 0 {
		s.Rows = 256
	}
	if s.Slots < 1 || s.Rows < s.Slots || s.Capacity < 1 {
		return nil, fmt.Errorf("decoder of %d sequences of %d tokens, %d in a step: want at least one sequence and a token of each in a step", s.Slots, s.Capacity, s.Rows)
	}
	if c.learnedPositions() && s.Capacity > c.positions() {
		return nil, fmt.Errorf("decoder for sequences of %d tokens: the model has a table of %d positions", s.Capacity, c.positions())
	}
	a := &arena{backend: m.memory.backend}
	d := &Decoder{m: m, mgr: mgr, settings: s, memory: a, passes: map[int]*decoderPass{}, lengths: make([]int, s.Slots)}
	d.cache = &kvCache{
		slots: s.Slots, capacity: s.Capacity, table: a.new(tensor.I32, s.Slots, 1), newEnds: a.new(tensor.I32, s.Slots+1),
		lengthEnds: a.new(tensor.I32, s.Slots+1), firsts: a.new(tensor.I32, s.Slots+1), rowEnds: a.new(tensor.I32, s.Slots+2),
		starts: a.new(tensor.I32, s.Slots+1),
	}
	for range c.NumLayers {
		d.cache.keys = append(d.cache.keys, a.new(tensor.F32, s.Slots, s.Capacity, c.Groups(), c.HeadDim()))
		d.cache.values = append(d.cache.values, a.new(tensor.F32, s.Slots, s.Capacity, c.Groups(), c.HeadDim()))
	}
	if c.rotary() {
		d.freqs = a.new(tensor.F32, s.Capacity, 1, 1, c.HeadDim())
	}
	d.chosen, d.logits = a.new(tensor.I32, s.Rows), a.new(tensor.F32, s.Rows, c.VocabSize)
	if a.err != nil {
		return nil, fmt.Errorf("allocate the cache of %d sequences of %d tokens: %w", s.Slots, s.Capacity, a.fail())
	}
	if d.freqs != nil {
		c.fillFreqs(d.freqs)
	}
	table, firsts := tensor.Data[int32](d.cache.table), tensor.Data[int32](d.cache.firsts)
	for i := range s.Slots {
		table[i], firsts[i+1] = int32(i), int32((i+1)*s.Capacity)
	}
	return d, nil
}

// Settings returns the sizes, without defaults.
func (d *Decoder) Settings() DecoderSettings { return d.settings }

// Close returns the memory.
func (d *Decoder) Close() error { return d.memory.close() }

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
	p.fill(d, chunks)
	d.current = run{index: -1}
	r := &d.current
	logits := rows(d.logits, 0, wanted)
	p.forward(r, d, wanted, logits)
	d.memory.guards.check()
	if r.err != nil {
		return nil, r.err
	}
	for _, c := range chunks {
		d.lengths[c.Slot] += len(c.Tokens)
	}
	return logits, nil
}

// place describes the chunks to the ops and returns the number of tokens and that of wanted logits.
func (d *Decoder) place(chunks []Chunk) (used, wanted int, err error) {
	c := d.cache
	newEnds, lengthEnds, rowEnds, starts := tensor.Data[int32](c.newEnds), tensor.Data[int32](c.lengthEnds), tensor.Data[int32](c.rowEnds), tensor.Data[int32](c.starts)
	chosen := tensor.Data[int32](d.chosen)
	next := 0
	for slot := range c.slots {
		fresh := 0
		if next < len(chunks) && chunks[next].Slot == slot {
			chunk := chunks[next]
			next++
			if fresh = len(chunk.Tokens); d.lengths[slot]+fresh > c.capacity {
				return 0, 0, fmt.Errorf("sequence of %d tokens in slot %d: want at most %d", d.lengths[slot]+fresh, slot, c.capacity)
			}
			if used+fresh > d.settings.Rows {
				return 0, 0, fmt.Errorf("step of more than %d tokens", d.settings.Rows)
			}
			if i := slices.IndexFunc(chunk.Tokens, func(id int32) bool { return id < 0 || int(id) >= d.m.cfg.VocabSize }); i >= 0 {
				return 0, 0, fmt.Errorf("token %d: want an id below vocab_size %d", chunk.Tokens[i], d.m.cfg.VocabSize)
			}
			for i := max(chunk.From, 0); i < fresh; i++ {
				chosen[wanted] = int32(used + i)
				wanted++
			}
			used += fresh
		}
		starts[slot] = int32(d.lengths[slot])
		newEnds[slot+1], rowEnds[slot+1] = int32(used), int32(used)
		lengthEnds[slot+1] = lengthEnds[slot] + int32(d.lengths[slot]+fresh)
	}
	if next < len(chunks) {
		return 0, 0, fmt.Errorf("chunk of slot %d: want ascending slots below %d", chunks[next].Slot, c.slots)
	}
	if used == 0 {
		return 0, 0, fmt.Errorf("step without tokens")
	}
	return used, wanted, nil
}

// decoderPass runs the model over some number of rows, of which the last ones may be unused.
type decoderPass struct {
	rows      int
	embedding *embedding
	layers    []layer
	proj      *tensor.Tensor // [rows h], as in Pass
	out, norm *tensor.Tensor // [rows h]
	picked    *tensor.Tensor // [rows h]: the rows of norm whose logits are wanted
	finalNorm norm
	head      linear
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
	if d.memory.err != nil {
		return nil, fmt.Errorf("allocate activations for %d tokens: %w", size, d.memory.err)
	}
	d.passes[size] = p
	return p, nil
}

func (d *Decoder) build(n int) *decoderPass {
	c := d.m.cfg
	c.AuxLossCoeff, c.HiddenDropout, c.AttentionDropout, c.Precision = 0, 0, 0, Precision{}
	own := &pool{arena: d.memory}
	b := builder{cfg: c, batch: 1, seq: n, keep: own, cache: d.cache}
	b.at(d.mgr)
	p := &decoderPass{
		rows: n, embedding: b.embedding(d.m), proj: own.f32(n, c.HiddenSize), out: own.f32(n, c.HiddenSize), norm: own.f32(n, c.HiddenSize),
		picked: own.f32(n, c.HiddenSize), finalNorm: b.norm(d.m.finalNorm, n), head: b.linear(linearWeights{weight: d.m.head}),
		pick: opmanager.MustBind(b.fwd, embeddingops.EmbeddingFwd),
	}
	p.layers = b.layers(d.m.layers, d.mgr, d.memory, d.freqs)
	return p
}

// fill writes the tokens and their positions.
func (p *decoderPass) fill(d *Decoder, chunks []Chunk) {
	tokens := tensor.Data[int32](p.embedding.indices)
	clear(tokens)
	at := 0
	for _, c := range chunks {
		copy(tokens[at:], c.Tokens)
		if p.embedding.positions != nil {
			places := tensor.Data[int32](p.embedding.places)
			for i := range c.Tokens {
				places[at+i] = int32(d.lengths[c.Slot] + i)
			}
		}
		at += len(c.Tokens)
	}
	if p.embedding.positions != nil {
		clear(tensor.Data[int32](p.embedding.places)[at:])
	}
	rowEnds := tensor.Data[int32](d.cache.rowEnds)
	rowEnds[len(rowEnds)-1] = int32(p.rows)
}

func (p *decoderPass) forward(r *run, d *Decoder, wanted int, logits *tensor.Tensor) {
	r.leave("embedding")
	p.embedding.forward(r, p.layers[0].in)
	for i := range p.layers {
		next := p.out
		if i+1 < len(p.layers) {
			next = p.layers[i+1].in
		}
		p.layers[i].forward(r, i, p.proj, next)
	}
	if wanted == 0 {
		return
	}
	r.leave("final norm")
	p.finalNorm.forward(r, p.out, p.norm)
	r.leave("output layer")
	picked := p.norm
	if wanted < p.rows {
		picked = rows(p.picked, 0, wanted)
		call(r, p.pick, embeddingops.EmbeddingFwdArgs{Indices: rows(d.chosen, 0, wanted), Weight: p.norm, Output: picked})
	}
	p.head.forward(r, picked, logits)
}

// cachedAttention is attention over the keys and values in a cache.
type cachedAttention struct {
	cache        *kvCache
	keys, values *tensor.Tensor // [slots capacity groups d]
	k, v         *tensor.Tensor // the same, [slots·capacity groups d]
	copy         *opmanager.Bound[attentionops.CopyToKVCacheArgs]
}

func (b *builder) cachedAttention() *cachedAttention {
	c := &cachedAttention{
		cache: b.cache, keys: b.cache.keys[b.depth], values: b.cache.values[b.depth],
		copy: opmanager.MustBind(b.fwd, attentionops.CopyToKVCache),
	}
	all := b.cache.slots * b.cache.capacity
	c.k, c.v = must(c.keys.Reshape(all, b.cfg.Groups(), b.cfg.HeadDim())), must(c.values.Reshape(all, b.cfg.Groups(), b.cfg.HeadDim()))
	return c
}

// append adds the keys and values of a call to the cache and makes the call use those of the cache.
func (c *cachedAttention) append(r *run, a *attentionops.FusedAttnFwdArgs) {
	call(r, c.copy, attentionops.CopyToKVCacheArgs{
		NewK: a.K, NewV: a.V, KCache: c.keys, VCache: c.values, PageTable: c.cache.table,
		CuNewLens: c.cache.newEnds, CuCachedLens: c.cache.lengthEnds, QKVFormat: attentionops.THD, IsNonPaged: true,
	})
	a.K, a.V, a.AttnMaskType = c.k, c.v, attentionops.PaddingCausalBottomRightMask
	a.CuSeqlensQ, a.CuSeqlensQPadded = c.cache.newEnds, c.cache.newEnds
	a.CuSeqlensKV, a.CuSeqlensKVPadded = c.cache.lengthEnds, c.cache.firsts
}
