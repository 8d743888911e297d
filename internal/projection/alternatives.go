package projection

import (
	"fmt"
	"maps"
	"slices"

	"github.com/primus-fl/primus/document"
)

// Alternative is the same model with other settings.
type Alternative struct {
	Nodes    int      `json:"nodes"`
	Settings []string `json:"settings"` // key=value
	Largest  float64  `json:"largest_total"`
	Fits     bool     `json:"fits"`
}

// setting is a change of parameters.
type setting map[string]any

// candidates are changes that need less memory, the ones that cost the least time first.
func (p *Plan) candidates() []setting {
	var list []setting
	if p.Precision.Sharding == ShardNothing && p.Parallel.Data*p.Parallel.Context > 1 {
		list = append(list, setting{"use_distributed_optimizer": true})
	}
	full := setting{"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
	var sizes []setting
	if p.Parallel.MicroBatch > 1 {
		sizes = append(sizes, setting{"micro_batch_size": 1})
	}
	if p.Recompute.Granularity != "full" {
		list = append(list, full)
	}
	if p.Model.Experts > 0 {
		for ep := p.Parallel.Expert * 2; ep <= min(p.Model.Experts, p.Parallel.World); ep *= 2 {
			sizes = append(sizes, setting{"expert_model_parallel_size": ep})
		}
	}
	for tp := p.Parallel.Tensor * 2; tp <= p.Parallel.DevicesPerNode; tp *= 2 {
		sizes = append(sizes, setting{"tensor_model_parallel_size": tp, "sequence_parallel": true})
	}
	for pp := p.Parallel.Pipeline * 2; pp <= min(p.Model.Layers, 16); pp *= 2 {
		sizes = append(sizes, setting{"pipeline_model_parallel_size": pp})
	}
	list = append(list, sizes...)
	beside := setting{}
	if p.Recompute.Granularity != "full" {
		beside = merged(beside, full)
	}
	if p.Precision.Sharding == ShardNothing {
		beside = merged(beside, setting{"use_distributed_optimizer": true})
	}
	for _, s := range sizes {
		if len(beside) > 0 {
			list = append(list, merged(s, beside))
		}
	}
	for _, s := range sizes {
		for _, other := range sizes {
			if both := merged(s, other); len(both) > max(len(s), len(other)) && s.before(other) {
				list = append(list, merged(both, beside))
			}
		}
	}
	return list
}

// before puts the two settings of a pair in one order, so that each pair is tried once.
func (s setting) before(other setting) bool {
	return slices.Min(slices.Collect(maps.Keys(s))) < slices.Min(slices.Collect(maps.Keys(other)))
}

func merged(settings ...setting) setting {
	all := setting{}
	for _, s := range settings {
		maps.Copy(all, s)
	}
	return all
}

// maxNodeFactor bounds how many times as many nodes are tried.
const maxNodeFactor = 64

// Alternatives returns other settings of the same model on the same devices, those that need less
// memory at lower cost first. Settings that cannot be cut over the devices are left out. When none
// fits, there are also those that fit the smallest number of nodes that is enough.
func (p *Plan) Alternatives(size, margin, reserve float64) ([]Alternative, error) {
	nodes := p.Parallel.World / p.Parallel.DevicesPerNode
	found, err := p.on(nodes, nil, size, margin, reserve)
	if err != nil || p.Memory(reserve).Fits(size, margin) {
		return found, err
	}
	fits := func(a Alternative) bool { return a.Fits }
	for factor := 2; factor <= maxNodeFactor && !slices.ContainsFunc(found, fits); factor *= 2 {
		more, err := p.on(nodes*factor, []setting{{}}, size, margin, reserve)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(more, func(a Alternative) bool { return !a.Fits })...)
	}
	return found, nil
}

// on returns the first settings and then the candidates on a number of nodes.
func (p *Plan) on(nodes int, first []setting, size, margin, reserve float64) ([]Alternative, error) {
	cluster := Cluster{Nodes: nodes, DevicesPerNode: p.Parallel.DevicesPerNode}
	bigger := *p
	bigger.Parallel.World = nodes * cluster.DevicesPerNode
	var found []Alternative
	for _, s := range append(first, bigger.candidates()...) {
		changes, err := document.FromGo(map[string]any(s))
		if err != nil {
			return nil, fmt.Errorf("projection: %w", err)
		}
		overrides, _ := changes.Map()
		other, err := Read(p.Model.Name, document.Merge(p.params, overrides), cluster)
		if err != nil {
			continue // the devices cannot be cut so
		}
		mem := other.Memory(reserve)
		a := Alternative{Nodes: nodes, Largest: mem.Stages[mem.Largest].Total, Fits: mem.Fits(size, margin)}
		a.Settings = changed(p.params, overrides)
		found = append(found, a)
	}
	return found, nil
}
