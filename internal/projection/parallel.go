package projection

import "fmt"

// Parallel is how a model is cut over devices.
type Parallel struct {
	World             int      `json:"devices"`
	DevicesPerNode    int      `json:"devices_per_node"`
	Tensor            int      `json:"tensor"`
	Pipeline          int      `json:"pipeline"`
	Virtual           int      `json:"virtual_stages"` // per pipeline rank
	Context           int      `json:"context"`
	Expert            int      `json:"expert"`
	ExpertTensor      int      `json:"expert_tensor"`
	Data              int      `json:"data"`
	ExpertData        int      `json:"expert_data"`
	Sequence          bool     `json:"sequence_parallel"`
	Schedule          Schedule `json:"schedule"`
	MicroBatch        int      `json:"micro_batch_size"`
	GlobalBatch       int      `json:"global_batch_size"`
	MicroBatches      int      `json:"micro_batches"` // per step and pipeline
	OverlapGradReduce bool     `json:"overlap_grad_reduce"`
	OverlapGather     bool     `json:"overlap_param_gather"`
}

// Schedule is the order in which a pipeline works on micro batches.
type Schedule string

const (
	ScheduleOneForwardOneBackward Schedule = "1f1b"
	ScheduleInterleaved           Schedule = "1f1b-interleaved"
	ScheduleZeroBubble            Schedule = "zero-bubble"
	ScheduleZeroBubbleV           Schedule = "zbv"
	ScheduleVHalf                 Schedule = "v-half"
	ScheduleVMin                  Schedule = "v-min"
)

// vee reports whether the chunks of a schedule lie in the shape of a V.
func (s Schedule) vee() bool {
	return s == ScheduleZeroBubbleV || s == ScheduleVHalf || s == ScheduleVMin
}

// rankOf returns which pipeline rank has a chunk, counted in the order of the model.
func (p Parallel) rankOf(chunk int) int {
	rank := chunk % p.Pipeline
	if p.Schedule.vee() && chunk/p.Pipeline%2 == 1 {
		return p.Pipeline - 1 - rank
	}
	return rank
}

// Cluster is the machine that a run is planned for.
type Cluster struct {
	Nodes          int // 0 means as many as the model is cut into
	DevicesPerNode int
}

func (r *reader) parallel(c Cluster) Parallel {
	p := Parallel{
		DevicesPerNode: c.DevicesPerNode, Tensor: r.size("tensor_model_parallel_size", 1), Pipeline: r.size("pipeline_model_parallel_size", 1),
		Context: r.size("context_parallel_size", 1), Expert: r.size("expert_model_parallel_size", 1), Virtual: 1,
		MicroBatch: r.size("micro_batch_size", 1), OverlapGradReduce: r.flag("overlap_grad_reduce"), OverlapGather: r.flag("overlap_param_gather"),
	}
	p.ExpertTensor = r.size("expert_tensor_parallel_size", p.Tensor)
	p.Sequence = r.flag("sequence_parallel") && p.Tensor > 1
	if p.Tensor > maxLayers || p.Pipeline > maxLayers || p.Context > maxLayers || p.Expert > maxLayers || p.ExpertTensor > maxLayers {
		r.fail(fmt.Errorf("projection: a model parallel size is above %d", maxLayers))
		return p
	}
	if r.count("num_experts") == 0 {
		p.Expert, p.ExpertTensor = 1, p.Tensor
	}
	dense, expert := p.Tensor*p.Pipeline*p.Context, p.ExpertTensor*p.Expert*p.Pipeline
	p.World = c.Nodes * c.DevicesPerNode
	if c.Nodes == 0 {
		unit := lcm(dense, expert)
		nodes := (unit + c.DevicesPerNode - 1) / c.DevicesPerNode
		for nodes*c.DevicesPerNode%unit != 0 {
			nodes++
		}
		p.World = nodes * c.DevicesPerNode
	}
	switch {
	case p.World%dense != 0:
		r.failOf("devices", "%d devices cannot be cut into tensor %d × pipeline %d × context %d parallel ranks: want a multiple of %d", p.World, p.Tensor, p.Pipeline, p.Context, dense)
		return p
	case p.World%expert != 0:
		r.failOf("devices", "%d devices cannot be cut into expert %d × expert tensor %d × pipeline %d parallel ranks: want a multiple of %d", p.World, p.Expert, p.ExpertTensor, p.Pipeline, expert)
		return p
	}
	p.Data, p.ExpertData = p.World/dense, p.World/expert
	p.GlobalBatch = r.count("global_batch_size")
	if p.GlobalBatch == 0 {
		p.GlobalBatch = p.MicroBatch * p.Data
	}
	if p.GlobalBatch%(p.MicroBatch*p.Data) != 0 {
		r.failAt("global_batch_size", "want a multiple of micro_batch_size %d × %d data-parallel ranks", p.MicroBatch, p.Data)
		return p
	}
	p.MicroBatches = p.GlobalBatch / (p.MicroBatch * p.Data)
	p.Schedule = ScheduleOneForwardOneBackward
	if r.flag("patch_zero_bubble") || r.flag("patch_primus_pipeline") {
		switch name := r.text("pp_algorithm", "1f1b-interleaved"); {
		case r.flag("patch_zero_bubble") && r.flagOr("enable_zero_bubble", true), name == "zero-bubble", name == "zero-bubble-heuristic":
			p.Schedule = ScheduleZeroBubble
		case name == "zbv-formatted":
			p.Schedule = ScheduleZeroBubbleV
		case name == "v-half", name == "v-min":
			p.Schedule = Schedule(name)
		case name == "1f1b", name == "1f1b-interleaved":
		default:
			r.failAt("pp_algorithm", "want 1f1b, 1f1b-interleaved, zero-bubble, zero-bubble-heuristic, zbv-formatted, v-half or v-min")
		}
		if r.flag("zero_bubble_v_schedule") {
			p.Schedule = map[string]Schedule{"half": ScheduleVHalf, "min": ScheduleVMin, "zb": ScheduleZeroBubbleV}[r.choice("zero_bubble_v_schedule_mem_setup", "half", "min", "zb")]
		}
		if r.flag("enable_1f1b_v") {
			r.fail(fmt.Errorf("projection: enable_1f1b_v is true, and there is no table of that schedule"))
		}
	}
	return p
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int) int { return a / gcd(a, b) * b }

// checkCut returns the sizes that cannot be cut as the experiment says.
func (r *reader) checkCut(m Model, p Parallel) {
	want := func(key string, size, parts int, what string) {
		if size%parts != 0 {
			r.failOf(key, "%s %d cannot be cut into %d %s parts", key, size, parts, what)
		}
	}
	want("num_attention_heads", m.Heads, p.Tensor, "tensor-parallel")
	if !m.Latent && m.Groups > p.Tensor {
		want("num_query_groups", m.Groups, p.Tensor, "tensor-parallel")
	}
	want("ffn_hidden_size", m.FFN, p.Tensor, "tensor-parallel")
	if m.Experts > 0 {
		want("num_experts", m.Experts, p.Expert, "expert-parallel")
		want("moe_ffn_hidden_size", m.ExpertFFN, p.ExpertTensor, "expert-tensor-parallel")
	}
	want("seq_length", m.Sequence, p.Context, "context-parallel")
}
