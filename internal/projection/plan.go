package projection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
)

// Plan is what an experiment says about a run.
type Plan struct {
	Model     Model     `json:"model"`
	Parallel  Parallel  `json:"parallel"`
	Precision Precision `json:"precision"`
	Recompute Recompute `json:"recompute"`
	Stages    [][]Chunk `json:"-"` // by pipeline rank

	inFlight       [][]int // micro batches with activations, by pipeline rank and chunk
	alike          []int   // the first pipeline rank with the same parts, by rank
	layers         [2]layer
	simulation     *waiting // nil unless it was kept
	dropout        bool     // of the residual stream
	scoreDropout   bool
	unfusedScores  bool
	fusedLoss      bool
	distributeSave bool
	tensorOverlap  bool
	expertOverlap  bool
	contextType    string
	params         *document.Map
}

// Recompute says which activations are computed again in the backward pass.
type Recompute struct {
	Granularity string   `json:"granularity,omitempty"` // full, selective or ""
	Method      string   `json:"method,omitempty"`      // uniform, block or ""
	Layers      int      `json:"layers,omitempty"`
	Modules     []string `json:"modules,omitempty"`
	LayerIDs    []int    `json:"layer_ids,omitempty"`
}

// layer is what the formulas say of a layer without experts, or with them.
type layer struct {
	work       Work
	held       held
	activation float64 // bytes of one micro batch
}

// Read returns the plan of a Megatron experiment. Name is that of the model.
func Read(name string, params *document.Map, cluster Cluster) (*Plan, error) {
	p, err := read(name, params, nil, cluster)
	if err != nil {
		return nil, err
	}
	p.inFlight, err = p.Parallel.inFlight()
	return p, err
}

// read is Read without the micro batches in flight, which follow from the table of the schedule.
// The parameters of over replace others.
func read(name string, params, over *document.Map, cluster Cluster) (*Plan, error) {
	if cluster.DevicesPerNode < 1 || cluster.DevicesPerNode > maxLayers || cluster.Nodes < 0 || cluster.Nodes > maxLayers {
		return nil, fmt.Errorf("projection: given %d nodes of %d devices, want numbers from 1 to %d", cluster.Nodes, cluster.DevicesPerNode, maxLayers)
	}
	r := &reader{params: params, over: over}
	p := &Plan{params: params}
	p.Parallel = r.parallel(cluster)
	p.Model = r.model(name, p.Parallel.Tensor)
	if err := r.err(); err != nil {
		return nil, err
	}
	r.checkCut(p.Model, p.Parallel)
	p.Precision = r.precision()
	p.Recompute = r.recompute()
	p.Stages = r.stages(p.Model, &p.Parallel)
	p.dropout, p.scoreDropout = r.float("hidden_dropout", 0.1) > 0, r.float("attention_dropout", 0.1) > 0
	p.fusedLoss = r.flag("cross_entropy_loss_fusion") && r.text("cross_entropy_fusion_impl", "native") == "te"
	p.distributeSave = r.flag("distribute_saved_activations")
	p.tensorOverlap, p.expertOverlap = r.flag("tp_comm_overlap"), r.flag("overlap_moe_expert_parallel_comm")
	if v, ok := r.lookup("cp_comm_type"); ok {
		p.contextType = v.String() // one for all layers, or a list
	}
	backend := r.text("attention_backend", "auto")
	p.unfusedScores = backend == "unfused" || backend == "local" || r.text("transformer_impl", "transformer_engine") == "local" && !r.flag("use_flash_attn")
	if err := r.err(); err != nil {
		return nil, err
	}
	p.derive()
	return p, nil
}

// derive computes what many formulas use.
func (p *Plan) derive() {
	for i, sparse := range []bool{false, true} {
		if sparse && p.Model.Experts == 0 {
			break
		}
		one := layer{work: p.layerWork(sparse), activation: sumBytes(p.Activations(sparse))}
		p.add(&one.held, p.Model.layer(sparse))
		p.layers[i] = one
	}
	p.alike = make([]int, len(p.Stages))
	seen := map[string]int{}
	for rank, chunks := range p.Stages {
		key := p.parts(chunks)
		first, ok := seen[key]
		if !ok {
			first, seen[key] = rank, rank
		}
		p.alike[rank] = first
	}
}

// parts describes chunks, so that those for which the formulas give the same are equal.
func (p *Plan) parts(chunks []Chunk) string {
	var key []byte
	for _, c := range chunks {
		for i, n := range c.Layers {
			mark := byte('d')
			if p.Model.sparse[n] {
				mark = 's'
			}
			if p.Recompute.recomputes(i, n) {
				mark -= 'a' - 'A'
			}
			key = append(key, mark)
		}
		for i := range c.MTP {
			mark := byte('m')
			if p.Recompute.recomputes(len(c.Layers)+i, p.Model.Layers+i) {
				mark = 'M'
			}
			key = append(key, mark)
		}
		if c.Embedding {
			key = append(key, 'e')
		}
		if c.Loss {
			key = append(key, 'l')
		}
		key = append(key, '|')
	}
	return string(key)
}

// layerAt returns what the formulas say of a layer.
func (p *Plan) layerAt(n int) *layer {
	if p.Model.sparse[n] {
		return &p.layers[1]
	}
	return &p.layers[0]
}

func (r *reader) recompute() Recompute {
	c := Recompute{
		Granularity: r.choice("recompute_granularity", "", "full", "selective"), Method: r.choice("recompute_method", "", "uniform", "block"),
	}
	c.Layers = 1
	if _, given := r.lookup("recompute_num_layers"); given {
		c.Layers = r.count("recompute_num_layers")
	}
	if r.flag("recompute_activations") && c.Granularity == "" {
		c.Granularity = "selective"
	}
	for _, v := range r.list("recompute_modules") {
		name, _ := v.Str()
		if !slices.Contains(recomputable, name) {
			r.failAt("recompute_modules", "want some of %v", recomputable)
		}
		c.Modules = append(c.Modules, name)
	}
	if c.Granularity == "selective" && c.Modules == nil {
		c.Modules = []string{"core_attn"}
	}
	c.LayerIDs = r.layerIDs()
	if c.Granularity == "full" && c.Method == "" && c.LayerIDs == nil {
		r.fail(fmt.Errorf("projection: recompute_granularity is full: want recompute_method uniform or block, or recompute_layer_ids"))
	}
	if c.Granularity == "full" && c.Method == "uniform" && c.Layers == 0 {
		r.failAt("recompute_num_layers", "want a number >= 1 with recompute_method uniform")
		c.Layers = 1
	}
	if c.Granularity != "full" {
		c.Method, c.Layers, c.LayerIDs = "", 0, nil
	}
	if c.Granularity != "selective" {
		c.Modules = nil
	}
	return c
}

// layerIDs reads a list of layers, which may be text with commas.
func (r *reader) layerIDs() []int {
	const key = "recompute_layer_ids"
	v, ok := r.lookup(key)
	if !ok {
		return nil
	}
	var words []string
	if items, ok := v.List(); ok {
		for _, item := range items {
			words = append(words, item.Text())
		}
	} else {
		words = strings.Split(v.Text(), ",")
	}
	var ids []int
	for _, word := range words {
		id, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || id < 0 || id > maxLayers {
			r.failAt(key, "want numbers of layers with commas")
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// recomputes reports whether the i-th layer of a chunk is computed again as a whole.
func (c Recompute) recomputes(i, layer int) bool {
	switch {
	case c.Granularity != "full":
		return false
	case c.LayerIDs != nil:
		return slices.Contains(c.LayerIDs, layer)
	case c.Method == "uniform":
		return true
	}
	return i < c.Layers
}
