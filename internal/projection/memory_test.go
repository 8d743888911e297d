package projection_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cuts are experiments over many devices, one kind of cut after the other.
var cuts = map[string]struct {
	nodes int
	sets  []map[string]any
}{
	"data parallel":          {2, llama8B},
	"distributed optimizer":  {2, append([]map[string]any{{"use_distributed_optimizer": true}}, llama8B...)},
	"tensor and pipeline":    {4, append([]map[string]any{{"tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 4, "use_distributed_optimizer": true}}, llama8B...)},
	"virtual stages":         {4, append([]map[string]any{{"pipeline_model_parallel_size": 8, "virtual_pipeline_model_parallel_size": 2}}, llama8B...)},
	"context":                {2, append([]map[string]any{{"context_parallel_size": 4, "tensor_model_parallel_size": 2, "use_distributed_optimizer": true}}, llama8B...)},
	"tied, cut":              {1, []map[string]any{shape(16, 2048, 8192, 32, 8, 128256), {"untie_embeddings_and_output_weights": false, "pipeline_model_parallel_size": 4}}},
	"biases, layer norms":    {1, []map[string]any{shape(12, 768, 3072, 12, 12, 50257), gpt2, {"tensor_model_parallel_size": 4, "sequence_parallel": true}}},
	"QKV biases":             {1, []map[string]any{shape(28, 3584, 18944, 28, 4, 152064), {"add_qkv_bias": true, "tensor_model_parallel_size": 4}}},
	"experts":                {4, append([]map[string]any{{"expert_model_parallel_size": 8, "use_distributed_optimizer": true}}, qwen30B...)},
	"experts, tensor, stage": {4, append([]map[string]any{{"expert_model_parallel_size": 4, "expert_tensor_parallel_size": 1, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 4, "use_distributed_optimizer": true}}, qwen30B...)},
	"experts cut":            {4, append([]map[string]any{{"expert_model_parallel_size": 4, "expert_tensor_parallel_size": 2, "tensor_model_parallel_size": 2, "use_distributed_optimizer": true}}, qwen30B...)},
	"latent attention":       {8, append([]map[string]any{{"expert_model_parallel_size": 8, "use_distributed_optimizer": true}}, deepSeekV2Lite...)},
	"multi-token prediction": {32, append(deepSeekV3, map[string]any{"mtp_num_layers": 1, "num_layers": 64, "moe_layer_freq": "([0]*3+[1]*61)", "expert_model_parallel_size": 8, "tensor_model_parallel_size": 2, "expert_tensor_parallel_size": 1, "pipeline_model_parallel_size": 8, "use_distributed_optimizer": true})},
	"experts in every other": {8, []map[string]any{shape(48, 5120, 16384, 40, 8, 202048), moe(128, 1, 8192), {"moe_layer_freq": 2, "moe_shared_expert_intermediate_size": 8192, "expert_model_parallel_size": 8, "use_distributed_optimizer": true}}},
}

// TestIndependentCount compares with a program that builds the shape of every parameter of a rank.
func TestIndependentCount(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	for name, c := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := params(t, c.sets...)
			input, err := json.Marshal(map[string]any{"params": given.Any(), "devices": 8 * c.nodes})
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), python, "testdata/count.py")
			cmd.Stdin = strings.NewReader(string(input))
			output, err := cmd.Output()
			require.NoError(t, err)
			var want struct {
				Total  float64
				Stages []struct{ Parameters, Weights, Gradients, Optimizer float64 }
			}
			require.NoError(t, json.Unmarshal(output, &want))

			plan, err := projection.Read("model", given, projection.Cluster{Nodes: c.nodes, DevicesPerNode: 8})
			require.NoError(t, err)
			got := plan.Memory(0)
			assert.InDelta(t, want.Total, got.Parameters, 0)
			require.Len(t, got.Stages, len(want.Stages))
			for i, s := range want.Stages {
				assert.InDelta(t, s.Parameters, got.Stages[i].Parameters, 0, "parameters of stage %d", i)
				assert.InDelta(t, s.Weights, got.Stages[i].Weights, 0, "weights of stage %d", i)
				assert.InDelta(t, s.Gradients, got.Stages[i].Gradients, 0, "gradients of stage %d", i)
				assert.InEpsilon(t, s.Optimizer, got.Stages[i].Optimizer, 1e-12, "optimizer of stage %d", i)
			}
		})
	}
}

// TestLinesAddUp checks that the total of a stage is the sum of the lines that explain it.
func TestLinesAddUp(t *testing.T) {
	t.Parallel()
	for name, c := range cuts {
		plan, err := projection.Read("model", params(t, c.sets...), projection.Cluster{Nodes: c.nodes, DevicesPerNode: 8})
		require.NoError(t, err, name)
		for _, s := range plan.Memory(3).Stages {
			var sum float64
			for _, l := range s.Lines {
				sum += l.Bytes
			}
			assert.InEpsilon(t, sum, s.Total, 1e-12, "%s, stage %d", name, s.Rank)
			assert.InEpsilon(t, s.Weights+s.FP8Copies+s.Gradients+s.Optimizer+s.Activations+s.Recomputing+s.Loss+s.Reserve, s.Total, 1e-12, "%s, stage %d", name, s.Rank)
		}
	}
}

// TestPrecision checks the bytes of the state of a parameter.
func TestPrecision(t *testing.T) {
	t.Parallel()
	base := append([]map[string]any{{"use_distributed_optimizer": true}}, llama8B...)
	const n, ranks = 8_030_261_248, 8
	for name, c := range map[string]struct {
		set                           map[string]any
		weights, gradients, optimizer float64
	}{
		"bf16":                      {nil, 2 * n, 4 * n, 12 * n / ranks},
		"gradients in bf16":         {map[string]any{"grad_reduce_in_bf16": true}, 2 * n, 2 * n, 12 * n / ranks},
		"a switch of 1":             {map[string]any{"grad_reduce_in_bf16": 1}, 2 * n, 2 * n, 12 * n / ranks},
		"not distributed":           {map[string]any{"use_distributed_optimizer": false}, 2 * n, 4 * n, 12 * n},
		"fp32":                      {map[string]any{"bf16": false}, 4 * n, 4 * n, 8 * n / ranks},
		"precision-aware optimizer": {map[string]any{"use_precision_aware_optimizer": true, "main_grads_dtype": "bf16", "exp_avg_dtype": "fp8", "exp_avg_sq_dtype": "bf16"}, 2 * n, 2 * n, 7 * n / ranks},
		"muon":                      {map[string]any{"optimizer": "dist_muon"}, 2 * n, 4 * n, 8 * n / ranks},
		"sgd without momentum":      {map[string]any{"optimizer": "sgd", "sgd_momentum": 0.0}, 2 * n, 4 * n, 4 * n / ranks},
		"half of it on the host":    {map[string]any{"optimizer_cpu_offload": true, "optimizer_offload_fraction": 0.5}, 2 * n, 4 * n, 6 * n / ranks},
		"sharded gradients":         {map[string]any{"use_megatron_fsdp": true, "data_parallel_sharding_strategy": "optim_grads"}, 2 * n, 4 * n / ranks, 12 * n / ranks},
		"sharded parameters":        {map[string]any{"use_torch_fsdp2": true}, 2*n/ranks + 2*2*(4096*128256+4096), 2 * n / ranks, 12 * n / ranks},
	} {
		s := read(t, append(base, c.set)...).Memory(0).Stages[0]
		assert.InDelta(t, c.weights, s.Weights, 0, name)
		assert.InDelta(t, c.gradients, s.Gradients, 0, name)
		assert.InDelta(t, c.optimizer, s.Optimizer, 0, name)
	}
	fp8 := read(t, append(base, map[string]any{"fp8": "hybrid"})...).Memory(0).Stages[0]
	linear := float64(32 * (4096*(4096+2*1024) + 4096*4096 + 3*4096*14336))
	assert.InDelta(t, 2*linear, fp8.FP8Copies, 0)
}

// TestActivations compares with the sums of a layer by hand, at sequence 4096 and one sequence.
func TestActivations(t *testing.T) {
	t.Parallel()
	const t0, h, q, kv, f = 4096.0, 4096.0, 4096.0, 1024.0, 14336.0
	dense := 2*(4*h+q+2*kv+q+2*f+f) + 4*32 // per token
	for name, c := range map[string]struct {
		set  map[string]any
		want float64
	}{
		"whole":                {nil, 32 * dense * t0},
		"two sequences":        {map[string]any{"micro_batch_size": 2}, 2 * 32 * dense * t0},
		"context":              {map[string]any{"context_parallel_size": 4}, 32 * dense * t0 / 4},
		"tensor":               {map[string]any{"tensor_model_parallel_size": 4}, 32 * dense * t0 / 4},
		"without sequence":     {map[string]any{"tensor_model_parallel_size": 4, "sequence_parallel": false}, 32 * (8*h + (dense-8*h)/4) * t0},
		"dropout":              {map[string]any{"hidden_dropout": 0.1}, (32*(dense+2*h) + h) * t0},
		"full, uniform":        {map[string]any{"recompute_granularity": "full", "recompute_method": "uniform"}, (32*2*h + dense) * t0},
		"full, groups of 4":    {map[string]any{"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 4}, (8*2*h + 4*dense) * t0},
		"full, block of 8":     {map[string]any{"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 8}, (8*2*h + 24*dense + dense) * t0},
		"full, block of 0":     {map[string]any{"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 0}, 32 * dense * t0},
		"full, some layers":    {map[string]any{"recompute_granularity": "full", "recompute_layer_ids": "0, 3,31"}, (3*2*h + 29*dense + dense) * t0},
		"selective, norms":     {map[string]any{"recompute_granularity": "selective", "recompute_modules": []any{"layernorm", "core_attn"}}, 32 * (dense - 4*h - 4*32) * t0},
		"scores, not flash":    {map[string]any{"attention_backend": "unfused"}, 32 * (dense - 4*32 + 2*32*4096) * t0},
		"fp8":                  {map[string]any{"fp8": "hybrid"}, 32 * (dense - 2*h - f + q) * t0},
		"pipeline of 4":        {map[string]any{"pipeline_model_parallel_size": 4, "global_batch_size": 16}, 4 * 8 * dense * t0},
		"few micro batches":    {map[string]any{"pipeline_model_parallel_size": 4, "global_batch_size": 4}, 2 * 8 * dense * t0},
		"pipeline, two chunks": {map[string]any{"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": 2, "global_batch_size": 32}, 11 * 4 * dense * t0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read(t, append(llama8B, c.set)...).Memory(0).Stages[0]
			assert.InEpsilon(t, c.want, s.Activations+s.Recomputing, 1e-12)
		})
	}
}

// TestPublishedActivations compares with the formula for a layer of GPT,
//
//	s·b·h · (34 + 5·a·s/h)
//
// of Korthikanti et al. 2022, arXiv:2205.05198, equation 1, and its parts on tensor-parallel ranks.
func TestPublishedActivations(t *testing.T) {
	t.Parallel()
	const s, b, h, a = 1024.0, 4.0, 768.0, 12.0
	base := []map[string]any{shape(1, 768, 3072, 12, 12, 50257), gpt2, {"micro_batch_size": 4, "hidden_dropout": 0.1, "attention_dropout": 0.1, "transformer_impl": "local"}}
	embedding := s * b * h // mask of its dropout
	for name, c := range map[string]struct {
		set  map[string]any
		want float64
	}{
		"one device":          {nil, s * b * h * (34 + 5*a*s/h)},
		"tensor":              {map[string]any{"tensor_model_parallel_size": 2}, s * b * h * (10 + 24.0/2 + 5*a*s/(2*h))},
		"tensor and sequence": {map[string]any{"tensor_model_parallel_size": 2, "sequence_parallel": true}, s * b * h / 2 * (34 + 5*a*s/h)},
		"selective recompute": {map[string]any{"recompute_granularity": "selective"}, s * b * h * 34},
	} {
		got := read(t, append(base, c.set)...).Memory(0).Stages[0]
		input := embedding
		if name == "tensor and sequence" {
			input /= 2
		}
		assert.InEpsilon(t, c.want+input, got.Activations, 1e-12, name)
	}
}

// TestLoss checks the last stage alone holds logits.
func TestLoss(t *testing.T) {
	t.Parallel()
	stages := read(t, append(llama8B, map[string]any{"pipeline_model_parallel_size": 2})...).Memory(0).Stages
	assert.Zero(t, stages[0].Loss)
	assert.InDelta(t, 4096*(2*2*4096+8*128256), stages[1].Loss, 0)
	fused := read(t, append(llama8B, map[string]any{"cross_entropy_loss_fusion": true, "cross_entropy_fusion_impl": "te"})...).Memory(0).Stages
	assert.InDelta(t, 4096*(2*2*4096+2*128256), fused[0].Loss, 0)
}

func TestAlternatives(t *testing.T) {
	t.Parallel()
	plan := read(t, append(llama8B, map[string]any{"micro_batch_size": 4})...)
	need := plan.Memory(0)
	require.False(t, need.Fits(80<<30, 0.05))
	all, err := plan.Alternatives(80<<30, 0.05, 0)
	require.NoError(t, err)
	fitting := 0
	for _, a := range all {
		overrides, _, err := document.ParseOverrides(a.Settings)
		require.NoError(t, err)
		other, err := projection.Read("model", document.Merge(params(t, llama8B...), document.Merge(overrides, micro(t, a.Settings))), projection.Cluster{Nodes: 1, DevicesPerNode: 8})
		require.NoError(t, err, a.Settings)
		mem := other.Memory(0)
		assert.InDelta(t, mem.Stages[mem.Largest].Total, a.Largest, 0, a.Settings)
		assert.Equal(t, mem.Fits(80<<30, 0.05), a.Fits, a.Settings)
		if a.Fits {
			fitting++
		}
	}
	assert.NotZero(t, fitting)
	assert.Less(t, fitting, len(all))
}

// TestMoreNodes checks that more nodes are proposed where the given ones are not enough.
func TestMoreNodes(t *testing.T) {
	t.Parallel()
	plan := read(t, append(deepSeekV3, map[string]any{"expert_model_parallel_size": 8, "use_distributed_optimizer": true, "global_batch_size": 4096})...)
	all, err := plan.Alternatives(80<<30, 0.05, 0)
	require.NoError(t, err)
	least := 0
	for _, a := range all {
		if a.Nodes == 1 {
			assert.False(t, a.Fits, a.Settings)
			continue
		}
		assert.True(t, a.Fits, a.Settings)
		if least == 0 {
			least = a.Nodes
		}
		assert.Equal(t, least, a.Nodes, "those of the smallest number that is enough")
	}
	assert.Greater(t, least, 8) // 671 billion parameters with 18 bytes of state are more than 12 TB
}

// micro returns the micro batch of TestAlternatives, unless the settings change it.
func micro(t *testing.T, settings []string) *document.Map {
	for _, s := range settings {
		if strings.HasPrefix(s, "micro_batch_size") {
			return nil
		}
	}
	v, err := document.FromGo(map[string]any{"micro_batch_size": 4})
	require.NoError(t, err)
	m, _ := v.Map()
	return m
}
