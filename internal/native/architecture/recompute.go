package architecture

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Granularity says which activations backward computes again, with Megatron's names.
type Granularity string

// The granularities; "" means that forward keeps all activations.
const (
	Full      Granularity = "full"      // those of whole layers
	Selective Granularity = "selective" // those of the modules of recompute_modules, in each layer
)

// Values returns the granularities.
func (Granularity) Values() []string {
	return []string{string(Full), string(Selective)}
}

// Method says which layers are computed again, with Megatron's names.
type Method string

// The methods.
const (
	Uniform Method = "uniform" // all, in chunks of recompute_num_layers
	Block   Method = "block"   // the first recompute_num_layers, one by one
)

// Values returns the methods.
func (Method) Values() []string {
	return []string{string(Uniform), string(Block)}
}

// The modules whose activations can be computed again, with Megatron's names.
const (
	Attention        = "core_attn" // norms of heads, rotary positions and attention, between the projections
	Norm             = "layernorm" // the norms before attention and MLP
	MLP              = "mlp"       // the MLP, but for its second projection
	RecomputeExperts = "moe"       // router and experts
)

// Plan are the parameters of the activations that forward does not keep and backward computes
// again, with Megatron's names. Losses and gradients are the same, bit for bit.
type Plan struct {
	Granularity Granularity `param:"recompute_granularity"`
	Method      Method      `param:"recompute_method"`      // with full; "" means uniform
	Layers      int         `param:"recompute_num_layers"`  // with full; 0 means 1
	Modules     []string    `param:"recompute_modules"`     // with selective; nil means core_attn
	Activations bool        `param:"recompute_activations"` // the older name of selective
}

// Validate returns every fault of the plan for a model of so many layers.
func (p Plan) Validate(layers int) error {
	var faults []error
	bad := func(key string, got any, want string) {
		faults = append(faults, fmt.Errorf("%s: given %v, want %s", key, got, want))
	}
	oneOf := func(key, got string, values []string) {
		if got != "" && !slices.Contains(values, got) {
			bad(key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
		}
	}
	oneOf("recompute_granularity", string(p.Granularity), p.Granularity.Values())
	oneOf("recompute_method", string(p.Method), p.Method.Values())
	for _, m := range p.Modules {
		oneOf("recompute_modules", m, []string{Attention, Norm, MLP, RecomputeExperts})
	}
	full := p.Granularity == Full
	switch {
	case p.Layers < 0 || full && p.Layers > layers:
		bad("recompute_num_layers", p.Layers, fmt.Sprintf("a number from 1 to num_layers %d", layers))
	case p.Activations && full:
		bad("recompute_activations", true, "false with recompute_granularity full")
	case !full && (p.Method != "" || p.Layers != 0):
		bad("recompute_granularity", fmt.Sprintf("%q", p.Granularity), "full with recompute_method or recompute_num_layers")
	case p.Modules != nil && !p.selective():
		bad("recompute_granularity", fmt.Sprintf("%q", p.Granularity), "selective with recompute_modules")
	}
	return errors.Join(faults...)
}

func (p Plan) selective() bool { return p.Granularity == Selective || p.Activations }

// Again reports whether backward computes a module again.
func (p Plan) Again(module string) bool {
	return p.selective() && (slices.Contains(p.Modules, module) || p.Modules == nil && module == Attention)
}

// Recomputes reports whether backward computes any activations again.
func (p Plan) Recomputes() bool { return p.Granularity == Full || p.selective() }

// Chunk returns the chunk [first, end) that a layer, of so many, belongs to. Of a chunk only the
// input of the first layer is kept. end is 0 for a layer that keeps its activations.
func (p Plan) Chunk(layer, layers int) (first, end int) {
	n := cmp.Or(p.Layers, 1)
	switch {
	case p.Granularity != Full:
		return 0, 0
	case p.Method != Block:
		first = layer / n * n
		return first, min(first+n, layers)
	case layer < n:
		return layer, layer + 1
	default:
		return 0, 0
	}
}

// LastChunk returns the first layer of the last chunk of so many layers, 0 without chunks.
func (p Plan) LastChunk(layers int) int {
	last := layers - 1
	if p.Method == Block {
		last = cmp.Or(p.Layers, 1) - 1
	}
	first, _ := p.Chunk(last, layers)
	return first
}

// Kept returns, of so many layers, the number of those whose activations are in memory at a time,
// and that of the inputs of layers that are kept besides.
func (p Plan) Kept(layers int) (kept, inputs int) {
	n := cmp.Or(p.Layers, 1)
	switch {
	case p.Granularity != Full:
		return layers, 0
	case p.Method == Block:
		return layers - n + 1, n - 1
	default:
		return min(n, layers), (layers+n-1)/n - 1
	}
}
