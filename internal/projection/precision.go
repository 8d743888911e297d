package projection

import "strings"

// Precision is what is kept for a parameter, and in how many bytes.
type Precision struct {
	Compute     string  `json:"compute"` // bf16, fp16, fp32, fp8 or fp4
	Optimizer   string  `json:"optimizer"`
	Sharding    string  `json:"sharding"` // none, optimizer, gradients or parameters
	Weight      int     `json:"weight_bytes"`
	FP8Copies   int     `json:"fp8_copy_bytes"` // of matrices of linear layers
	Gradient    int     `json:"gradient_bytes"`
	Master      int     `json:"master_bytes"`
	FirstMoment int     `json:"first_moment_bytes"`
	SecondMom   int     `json:"second_moment_bytes"`
	Offloaded   float64 `json:"offloaded_fraction,omitempty"`
}

// Kinds of sharding over data-parallel ranks; each includes the one before.
const (
	ShardNothing    = "none"
	ShardOptimizer  = "optimizer"
	ShardGradients  = "gradients"
	ShardParameters = "parameters"
)

var widths = map[string]int{"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "fp8": 1, "uint8": 1}

func (r *reader) width(key string) int {
	name := r.text(key, "fp32")
	n, ok := widths[strings.TrimPrefix(name, "torch.")]
	if !ok {
		r.failAt(key, "want fp32, bf16, fp16 or fp8")
		return 4
	}
	return n
}

func (r *reader) precision() Precision {
	p := Precision{Compute: "fp32", Optimizer: r.text("optimizer", "adam"), Sharding: ShardNothing, Weight: 4, Gradient: 4, FirstMoment: 4, SecondMom: 4}
	half := r.flag("bf16") || r.flag("fp16")
	if half {
		p.Compute, p.Weight, p.Master = "bf16", 2, 4
		if r.flag("fp16") {
			p.Compute = "fp16"
		}
	}
	fsdp2 := r.flag("use_torch_fsdp2")
	if half && (r.flag("grad_reduce_in_bf16") || fsdp2 || !r.flag("bf16") && !r.flag("accumulate_allreduce_grads_in_fp32")) {
		p.Gradient = 2
	}
	if r.text("fp8", "") != "" {
		p.Compute, p.FP8Copies = "fp8", 2
		if r.flag("no_fp8_weight_transpose_cache") {
			p.FP8Copies = 1
		}
		if r.flag("fp8_param_gather") {
			p.Weight, p.FP8Copies = 1, p.FP8Copies-1
		}
	}
	if r.text("fp4", "") != "" {
		p.Compute, p.FP8Copies = "fp4", 1
	}
	if r.flag("use_precision_aware_optimizer") {
		p.FirstMoment, p.SecondMom = r.width("exp_avg_dtype"), r.width("exp_avg_sq_dtype")
		if half {
			p.Master, p.Gradient = r.width("main_params_dtype"), r.width("main_grads_dtype")
		}
	}
	switch {
	case p.Optimizer == "sgd":
		p.SecondMom = 0
		if r.float("sgd_momentum", 0.9) == 0 {
			p.FirstMoment = 0
		}
	case strings.HasSuffix(p.Optimizer, "muon"): // the few parameters that it leaves to Adam are counted as its own
		p.SecondMom = 0
	}
	switch strategy := r.choice("data_parallel_sharding_strategy", "no_shard", "optim", "optim_grads", "optim_grads_params"); {
	case fsdp2:
		p.Sharding = ShardParameters
	case r.flag("use_megatron_fsdp"), r.flag("use_custom_fsdp"):
		p.Sharding = map[string]string{"no_shard": ShardNothing, "optim": ShardOptimizer, "optim_grads": ShardGradients, "optim_grads_params": ShardParameters}[strategy]
	case r.flag("use_distributed_optimizer"), p.Optimizer == "dist_muon":
		p.Sharding = ShardOptimizer
	}
	if r.flag("optimizer_cpu_offload") {
		p.Offloaded = r.float("optimizer_offload_fraction", 1)
	}
	return p
}
