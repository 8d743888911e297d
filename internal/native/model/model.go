package model

import (
	"fmt"
	"strconv"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/internal/native/memory"
)

// Model holds the weights of a decoder and their gradients, in memory of a device backend.
type Model struct {
	cfg    architecture.Config
	part   Part
	memory *memory.Arena
	frozen bool // there are no gradients

	embedding *Param
	positions *Param // nil unless they are learned
	layers    []LayerWeights
	finalNorm NormWeights
	head      *Param // the embedding when tied
	params    []*Param
	adapters  []*Param // A and B of each adapter

	drawn, drawnAdapters []*Param // params and adapters with those of other stages, which have no memory

	flats   []Flat
	rounded []bool      // by depth: whether the copies of the weights are those of their values
	scales  *fp8.Scales // of operands of fp8; nil unless scaling is delayed
}

// New allocates a model with zero weights. Close returns its memory.
func New(cfg architecture.Config, backend device.Backend) (*Model, error) {
	return NewPart(cfg, backend, Part{})
}

// NewPart is New for the part of a model that a rank has.
func NewPart(cfg architecture.Config, backend device.Backend, part Part) (*Model, error) {
	return newModel(cfg, backend, part, false)
}

// NewFrozen is New without memory for gradients. A pass of such a model cannot train. With bf16 or
// fp16, but not with fp8, matrices have that type and no values in f32.
func NewFrozen(cfg architecture.Config, backend device.Backend) (*Model, error) {
	if cfg.Recipe == "" || cfg.Recipe == fp8.Delayed { // there are no earlier steps
		cfg.Recipe = fp8.Tensorwise
	}
	return newModel(cfg, backend, Part{}, true)
}

func newModel(cfg architecture.Config, backend device.Backend, part Part, frozen bool) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, part: part, memory: &memory.Arena{Backend: backend}, frozen: frozen}
	b := NewWeightBuilder(cfg, part)
	h, normal := cfg.HiddenSize, Start{Std: cfg.InitMethodStd}
	m.embedding = b.Table(b.Names.Embedding+".weight", normal, cfg.VocabSize, h)
	if cfg.LearnedPositions() {
		m.positions = b.Param(b.Names.Positions+".weight", normal, cfg.Positions(), h)
	}
	for i := range cfg.NumLayers {
		b.Depth = i + 1
		m.layers = append(m.layers, b.Layer(b.Names.Layers+strconv.Itoa(i)+"."))
	}
	b.Depth = cfg.NumLayers + 1
	m.finalNorm = b.Norm(b.Names.FinalNorm, h)
	m.head = m.embedding
	if cfg.Untie {
		m.head = b.Table(b.Names.Head+".weight", normal, cfg.VocabSize, h)
	}
	m.choose(b.Params, b.Adapters)
	m.allocate()
	m.copies()
	m.rounded = make([]bool, cfg.NumLayers+2)
	if m.memory.Err != nil {
		return nil, fmt.Errorf("allocate the weights: %w", m.memory.Fail())
	}
	if _, counts := backend.(*memory.Counter); !counts {
		m.scales.Reset()
	}
	return m, nil
}

// Outline returns a model without memory, for the names and shapes of its weights.
func Outline(cfg architecture.Config) (*Model, error) { return New(cfg, &memory.Counter{}) }

// Config returns the parameters of the architecture.
func (m *Model) Config() architecture.Config { return m.cfg }

// Backend returns the device backend in whose memory the weights lie.
func (m *Model) Backend() device.Backend { return m.memory.Backend }

// Params returns every weight once, in a fixed order. The caller must not change the slice.
func (m *Model) Params() []*Param { return m.params }

// Divided reports whether this is the part of a model that a rank has.
func (m *Model) Divided() bool {
	return m.part.Tensor != nil || m.part.Experts != nil || m.part.Stretches != nil
}

// Close returns the memory of weights and gradients.
func (m *Model) Close() error { return m.memory.Close() }

// local returns the parameters of the part of a layer that this rank computes.
func (m *Model) local() architecture.Config {
	c := m.cfg
	if t := m.part.Tensor; t != nil {
		c.KVChannels, c.NumQueryGroups, c.MoEFFNHiddenSize = c.HeadDim(), c.Groups()/t.Ranks, c.ExpertSize()
		c.NumAttentionHeads, c.FFNHiddenSize = c.NumAttentionHeads/t.Ranks, c.FFNHiddenSize/t.Ranks
	}
	return c
}
