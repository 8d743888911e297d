package projection

import (
	"fmt"
	"slices"
	"strings"
)

// Memory is the memory that a run needs on a device.
type Memory struct {
	Parameters float64 `json:"parameters"`
	Active     float64 `json:"active_parameters"`
	Stages     []Stage `json:"stages"`
	Largest    int     `json:"largest_stage"`
}

// Stage is the memory of a device of a pipeline rank, in bytes.
type Stage struct {
	Rank        int     `json:"rank"`
	Chunks      []Chunk `json:"chunks"`
	InFlight    []int   `json:"micro_batches_in_flight"` // by chunk
	Parameters  float64 `json:"parameters"`
	Weights     float64 `json:"weights"`
	FP8Copies   float64 `json:"fp8_copies,omitempty"`
	Gradients   float64 `json:"gradients"`
	Optimizer   float64 `json:"optimizer"`
	Activations float64 `json:"activations"`
	Recomputing float64 `json:"recomputing"`
	Loss        float64 `json:"loss"`
	Reserve     float64 `json:"reserve"`
	Total       float64 `json:"total"`
	Lines       []Line  `json:"lines"`
}

// Line is a part of the memory of a stage with the formula that it came from.
type Line struct {
	Part    string  `json:"part"`
	Bytes   float64 `json:"bytes"`
	Formula string  `json:"formula"`
	Numbers string  `json:"numbers"`
}

// held is the parameters of a device, by how their state is sharded.
type held struct {
	dense, expert             float64 // sharded over all data-parallel ranks, and over those of experts
	adapters                  float64 // of dense
	linearDense, linearExpert float64 // of which matrices of linear layers
	largest                   float64 // the most that a layer has
}

// plus adds the parameters of a layer.
func (h *held) plus(one held) {
	h.dense, h.expert, h.adapters = h.dense+one.dense, h.expert+one.expert, h.adapters+one.adapters
	h.linearDense, h.linearExpert = h.linearDense+one.linearDense, h.linearExpert+one.linearExpert
	h.largest = max(h.largest, one.largest)
}

func (h held) total() float64 { return h.dense + h.expert }

// trained returns the parameters that have gradients and an optimizer.
func (m Model) trained(h held) (dense, expert float64) {
	if m.AdapterRank > 0 {
		return h.adapters, 0
	}
	return h.dense, h.expert
}

func (p *Plan) add(h *held, weights []Weight) {
	var layer float64
	for _, w := range weights {
		n, into, linears := w.Count, &h.dense, &h.linearDense
		switch w.split {
		case tensorwise:
			n /= float64(p.Parallel.Tensor)
		case expertwise:
			n, into, linears = n/float64(p.Parallel.Expert*p.Parallel.ExpertTensor), &h.expert, &h.linearExpert
		case expertwhole:
			n, into, linears = n/float64(p.Parallel.Expert), &h.expert, &h.linearExpert
		}
		*into += n
		layer += n
		if w.adapter {
			h.adapters += n
		}
		if w.use == linear {
			*linears += n
		}
	}
	h.largest = max(h.largest, layer)
}

func (p *Plan) held(rank int) held {
	var h held
	for _, c := range p.Stages[rank] {
		for _, layer := range c.Layers {
			h.plus(p.layerAt(layer).held)
		}
		for range c.MTP {
			p.add(&h, p.Model.mtpLayer())
		}
		if c.Embedding {
			p.add(&h, p.Model.embedding())
		}
		if c.Loss {
			embedding := slices.ContainsFunc(p.Stages[rank], func(c Chunk) bool { return c.Embedding })
			p.add(&h, p.Model.head(!embedding))
		}
		if c.MTP > 0 && p.Parallel.Pipeline > 1 && !c.Embedding { // multi-token prediction embeds tokens, too
			p.add(&h, p.Model.embedding()[:1])
		}
	}
	return h
}

// shards returns over how many ranks a kind of state is cut, for dense parameters and experts.
func (p *Plan) shards(kind string) (dense, expert float64) {
	order := []string{ShardNothing, ShardOptimizer, ShardGradients, ShardParameters}
	if slices.Index(order, p.Precision.Sharding) < slices.Index(order, kind) {
		return 1, 1
	}
	return float64(p.Parallel.Data * p.Parallel.Context), float64(p.Parallel.ExpertData)
}

// Memory returns the memory of every pipeline stage. Reserve is the memory of a device for what no
// formula describes: the context of the driver, libraries and buffers of communication.
func (p *Plan) Memory(reserve float64) Memory {
	var mem Memory
	mem.Parameters, mem.Active = p.Model.Count()
	for rank := range p.Stages {
		s := p.stage(rank, reserve)
		mem.Stages = append(mem.Stages, s)
		if s.Total > mem.Stages[mem.Largest].Total {
			mem.Largest = rank
		}
	}
	return mem
}

// stage returns the memory of a device of a pipeline rank, with the parts of which it consists.
func (p *Plan) stage(rank int, reserve float64) Stage {
	s := Stage{Rank: rank, Chunks: p.Stages[rank], InFlight: p.inFlight[rank]}
	p.fill(&s, reserve, func(part string, bytes float64, how explanation) {
		formula, numbers := how()
		s.Lines = append(s.Lines, Line{part, bytes, formula, numbers})
	})
	return s
}

// explanation returns the formula of a figure, and the formula with numbers.
type explanation func() (formula, numbers string)

// fill computes the memory of a stage with some chunks and micro batches in flight, and hands out
// the parts that are not 0.
func (p *Plan) fill(s *Stage, reserve float64, part func(part string, bytes float64, how explanation)) {
	h, c := p.held(s.Rank), p.Precision
	s.Parameters = h.total()
	line := func(into *float64, name string, bytes float64, how explanation) {
		*into = bytes
		if bytes > 0 {
			s.Total += bytes
			part(name, bytes, how)
		}
	}
	sharded := func(kind string, bytes int) (float64, explanation) {
		d, e := p.shards(kind)
		dense, expert, of := h.dense, h.expert, "parameters"
		if p.Model.AdapterRank > 0 && kind != ShardParameters {
			dense, expert = p.Model.trained(h)
			of = "parameters of adapters"
		}
		return float64(bytes) * (dense/d + expert/e), func() (string, string) {
			switch {
			case d == 1 && e == 1:
				return fmt.Sprintf("%d · %s", bytes, of), fmt.Sprintf("%d · %.0f", bytes, dense+expert)
			case expert == 0:
				return fmt.Sprintf("%d · %s / (dp · cp)", bytes, of), fmt.Sprintf("%d · %.0f / %.0f", bytes, dense, d)
			}
			return fmt.Sprintf("%d · (dense parameters / (dp · cp) + parameters of experts / edp)", bytes), fmt.Sprintf("%d · (%.0f / %.0f + %.0f / %.0f)", bytes, dense, d, expert, e)
		}
	}

	bytes, how := sharded(ShardParameters, c.Weight)
	if c.Sharding == ShardParameters {
		whole := how
		bytes += 2 * float64(c.Weight) * h.largest
		how = func() (string, string) {
			formula, numbers := whole()
			return formula + " + 2 gathered layers", numbers + fmt.Sprintf(" + 2 · %d · %.0f", c.Weight, h.largest)
		}
	}
	line(&s.Weights, "weights", bytes, how)
	if c.Sharding == ShardParameters {
		line(&s.FP8Copies, "fp8 copies of weights", 2*float64(c.FP8Copies)*h.largest, func() (string, string) {
			return fmt.Sprintf("%d · parameters of 2 gathered layers", c.FP8Copies), fmt.Sprintf("%d · 2 · %.0f", c.FP8Copies, h.largest)
		})
	} else {
		line(&s.FP8Copies, "fp8 copies of weights", float64(c.FP8Copies)*(h.linearDense+h.linearExpert), func() (string, string) {
			return fmt.Sprintf("%d · parameters of linear layers", c.FP8Copies), fmt.Sprintf("%d · %.0f", c.FP8Copies, h.linearDense+h.linearExpert)
		})
	}
	bytes, how = sharded(ShardGradients, c.Gradient)
	line(&s.Gradients, "gradients", bytes, how)
	bytes, how = sharded(ShardOptimizer, c.Master+c.FirstMoment+c.SecondMom)
	line(&s.Optimizer, "optimizer state", bytes*(1-c.Offloaded), func() (string, string) {
		formula, numbers := how()
		if c.Offloaded > 0 {
			formula, numbers = fmt.Sprintf("(%s) · (1 − offloaded)", formula), fmt.Sprintf("(%s) · (1 − %v)", numbers, c.Offloaded)
		}
		return fmt.Sprintf("%s: %d master weight + %d + %d moments", formula, c.Master, c.FirstMoment, c.SecondMom), numbers
	})
	p.stageActivations(s, line)
	line(&s.Reserve, "reserve", reserve, func() (string, string) { return "given by --reserve", "" })
}

func (p *Plan) stageActivations(s *Stage, line func(into *float64, name string, bytes float64, how explanation)) {
	var kept, working float64
	each := make([]float64, len(s.Chunks))
	for i, chunk := range s.Chunks {
		bytes, again := p.chunkActivations(chunk)
		each[i] = bytes
		kept += float64(s.InFlight[i]) * bytes
		working = max(working, again)
	}
	line(&s.Activations, "activations", kept, func() (string, string) {
		numbers := make([]string, len(each))
		for i, bytes := range each {
			numbers[i] = fmt.Sprintf("%d · %.0f", s.InFlight[i], bytes)
		}
		return "Σ over chunks: micro batches in flight · activations of the chunk", strings.Join(numbers, " + ")
	})
	line(&s.Recomputing, "recomputed layer", working, func() (string, string) {
		return "activations of the layers that are computed again at once", fmt.Sprintf("%.0f", working)
	})
	if slices.ContainsFunc(s.Chunks, func(c Chunk) bool { return c.Loss }) {
		bytes, formula := p.lossBytes()
		line(&s.Loss, "logits and loss", bytes, func() (string, string) { return formula, fmt.Sprintf("%.0f", bytes) })
	}
}

// Fits reports whether every stage fits a device of a size, when the margin, a fraction of it,
// stays free.
func (m Memory) Fits(size, margin float64) bool {
	return m.Stages[m.Largest].Total <= size*(1-margin)
}

// Symbols explains the names in formulas.
func (p *Plan) Symbols() []string {
	list := []string{
		fmt.Sprintf("t = %.0f: tokens of a micro batch on a rank, sequence · micro_batch_size / cp", p.tokens()),
		fmt.Sprintf("l = %.0f: those of them that norms see, t / tp with sequence_parallel", p.local()),
		fmt.Sprintf("e = %.0f: bytes of an element", p.element()),
		fmt.Sprintf("s = %.0f: bytes of an element that a linear layer keeps of its input", p.saved()),
		fmt.Sprintf("tp = %d, cp = %d, dp = %d", p.Parallel.Tensor, p.Parallel.Context, p.Parallel.Data),
	}
	if p.Model.Experts > 0 {
		list = append(list, fmt.Sprintf("etp = %d, edp = %d: expert tensor and expert data parallel ranks; topk = %d", p.Parallel.ExpertTensor, p.Parallel.ExpertData, p.Model.TopK))
	}
	return list
}

// Assumptions lists the assumptions of the figures of memory.
func (p *Plan) Assumptions() []string {
	list := []string{
		"the size of the vocabulary is that of " + p.Model.VocabularyFrom,
		"kernels keep no more than the listed tensors: attention and activations are fused as in Transformer Engine",
		"the allocator wastes nothing; --memory-safety-margin is for that",
	}
	if p.Model.Experts > 0 {
		list = append(list, "tokens are spread evenly over the experts")
	}
	if p.Precision.FP8Copies > 0 {
		list = append(list, "inputs of linear layers are kept in fp8, and the fp8 copies of weights for the whole step")
	}
	if p.Model.AdapterRank > 0 {
		list = append(list, "the frozen weights have neither gradients nor an optimizer, and their linear layers keep their inputs for the adapters")
	}
	if p.Precision.SecondMom == 0 && p.Precision.Optimizer != "sgd" {
		list = append(list, "all parameters are counted with "+p.Precision.Optimizer+", also those that it leaves to Adam")
	}
	return list
}
