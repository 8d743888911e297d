package projection

import (
	"fmt"
	"strings"
)

// Traffic is what a device sends for one purpose in a step.
type Traffic struct {
	Kind      string  `json:"kind"` // tensor, expert, expert tensor, context, pipeline or data
	Bytes     float64 `json:"bytes"`
	Link      string  `json:"link"` // within the node, or between nodes
	Seconds   float64 `json:"seconds"`
	Exposed   float64 `json:"exposed_seconds"` // those that no computation hides
	Formula   string  `json:"formula"`
	Overlap   string  `json:"overlap"`
	perPass   float64 // bytes for one micro batch of the slowest stage
	hideable  bool
	inPasses  bool
	bandwidth float64
}

// Names of links.
const (
	linkInside  = "within the node"
	linkBetween = "between nodes"
)

// link returns which link a group of devices uses that spans a number of ranks.
func (p *Plan) link(span int, r Rates) (name string, bandwidth float64) {
	if span <= p.Parallel.DevicesPerNode {
		return linkInside, r.Inside
	}
	return linkBetween, r.Between
}

// share is the part of a tensor that a ring moves between n devices.
func share(n int) float64 { return float64(n-1) / float64(n) }

// traffic returns what a device of a pipeline rank sends in a step.
func (p *Plan) traffic(rank int, r Rates) []Traffic {
	c, m := p.Parallel, p.Model
	e, t, l, h := p.element(), p.tokens(), p.local(), float64(m.Hidden)
	layers, sparse := p.countLayers(rank)
	var list []Traffic
	add := func(kind string, span int, perMicroBatch float64, hideable bool, overlap, formula string) {
		if perMicroBatch == 0 {
			return
		}
		x := Traffic{Kind: kind, perPass: perMicroBatch, Bytes: perMicroBatch * float64(c.MicroBatches), Formula: formula, Overlap: overlap, hideable: hideable, inPasses: true}
		x.Link, x.bandwidth = p.link(span, r)
		list = append(list, x)
	}
	if c.Tensor > 1 {
		blocks := 2*(layers-sparse) + sparse
		if m.SharedFFN > 0 {
			blocks += sparse
		}
		overlap := "not hidden"
		if p.tensorOverlap {
			overlap = "hidden by the products, with tp_comm_overlap"
		}
		add("tensor", c.Tensor, 4*float64(blocks)*share(c.Tensor)*e*t*h, p.tensorOverlap, overlap,
			"4 · blocks of the stage · (tp − 1) / tp · e · t · hidden, an all-gather and a reduce-scatter in each pass")
	}
	if c.Expert > 1 && sparse > 0 {
		overlap := "not hidden"
		if p.expertOverlap {
			overlap = "hidden by other micro batches, with overlap_moe_expert_parallel_comm"
		}
		add("expert", c.Expert*c.ExpertTensor, 4*float64(sparse)*share(c.Expert)*e*l*float64(m.TopK)*h, p.expertOverlap, overlap,
			"4 · layers with experts · (ep − 1) / ep · e · l · topk · hidden, dispatch and combination in each pass")
	}
	if c.ExpertTensor > 1 && sparse > 0 {
		add("expert tensor", c.ExpertTensor, 4*float64(sparse)*float64(c.ExpertTensor-1)*e*l*float64(m.TopK)*h, false, "not hidden",
			"4 · layers with experts · (etp − 1) · e · l · topk · hidden")
	}
	if c.Context > 1 {
		keys := 2 * m.keys()
		if m.Latent {
			keys = m.queries() + m.values()
		}
		bytes, formula := 3*float64(c.Context-1)*e*t*float64(keys)/float64(c.Tensor), "3 · layers · (cp − 1) · e · t · width of K and V / tp: K and V go round in both passes, their gradients in one"
		if strings.Contains(p.contextType, "a2a") {
			bytes = 2 * share(c.Context) * e * t * float64(m.queries()+keys+m.values()) / float64(c.Tensor)
			formula = "2 · layers · (cp − 1) / cp · e · t · widths of Q, K, V and output / tp"
		}
		add("context", c.Tensor*c.Context, float64(layers)*bytes, true, "hidden by attention", formula)
	}
	if c.Pipeline > 1 {
		stride := c.World / c.Pipeline
		span := c.DevicesPerNode + 1
		if stride*c.Pipeline <= c.DevicesPerNode {
			span = c.DevicesPerNode
		}
		add("pipeline", span, 2*float64(c.Virtual)*e*l*h, c.Virtual > 1, map[bool]string{true: "hidden by other chunks", false: "not hidden"}[c.Virtual > 1],
			"2 · virtual stages · e · l · hidden, activations one way and their gradients the other")
	}
	return append(list, p.dataTraffic(rank, r)...)
}

// countLayers returns the layers of a pipeline rank, and how many of them have experts.
func (p *Plan) countLayers(rank int) (layers, sparse int) {
	for _, c := range p.Stages[rank] {
		layers += len(c.Layers) + c.MTP
		for _, layer := range c.Layers {
			if p.Model.sparse[layer] {
				sparse++
			}
		}
		if p.Model.sparse[p.Model.Layers-1] {
			sparse += c.MTP
		}
	}
	return layers, sparse
}

// dataTraffic is the exchange of gradients and weights between replicas.
func (p *Plan) dataTraffic(rank int, r Rates) []Traffic {
	c, q, h := p.Parallel, p.Precision, p.held(rank)
	dense, expert := p.Model.trained(h)
	replicas := c.Data * c.Context
	passes, formula := 1.0, ""
	var bytesOf func(trained, all float64, ranks int) float64
	switch q.Sharding {
	case ShardParameters:
		passes = float64(c.MicroBatches)
		bytesOf = func(n, all float64, ranks int) float64 {
			return passes * share(ranks) * (all*float64(2*q.Weight) + n*float64(q.Gradient))
		}
		formula = fmt.Sprintf("micro batches · (dp · cp − 1) / (dp · cp) · parameters · (2 · %d + %d): weights are gathered in both passes, gradients scattered", q.Weight, q.Gradient)
	case ShardNothing:
		bytesOf = func(n, _ float64, ranks int) float64 { return 2 * share(ranks) * n * float64(q.Gradient) }
		formula = fmt.Sprintf("2 · (dp · cp − 1) / (dp · cp) · parameters · %d: gradients are summed", q.Gradient)
	default:
		bytesOf = func(n, _ float64, ranks int) float64 { return share(ranks) * n * float64(q.Gradient+q.Weight) }
		formula = fmt.Sprintf("(dp · cp − 1) / (dp · cp) · parameters · (%d + %d): gradients are scattered, weights gathered", q.Gradient, q.Weight)
	}
	hidden := c.OverlapGradReduce || q.Sharding == ShardParameters
	overlap := "not hidden: overlap_grad_reduce is off"
	if hidden {
		overlap = "hidden by the passes of one micro batch"
		if q.Sharding == ShardParameters {
			overlap = "hidden by the passes"
		}
	}
	var list []Traffic
	for _, part := range []struct {
		kind         string
		trained, all float64
		ranks        int
		formula      string
	}{{"data", dense, h.dense, replicas, formula}, {"data of experts", expert, h.expert, c.ExpertData, strings.ReplaceAll(formula, "dp · cp", "edp")}} {
		if part.ranks < 2 || part.trained == 0 {
			continue
		}
		x := Traffic{Kind: part.kind, Bytes: bytesOf(part.trained, part.all, part.ranks), Formula: part.formula, Overlap: overlap, hideable: hidden}
		x.Link, x.bandwidth = p.link(c.World/c.Pipeline, r)
		x.perPass = x.Bytes / passes
		list = append(list, x)
	}
	return list
}
