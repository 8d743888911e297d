package projection_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// params returns the parameters of a Megatron experiment.
func params(t testing.TB, sets ...map[string]any) *document.Map {
	t.Helper()
	all := map[string]any{
		"bf16": true, "swiglu": true, "add_bias_linear": false, "normalization": "RMSNorm", "position_embedding_type": "rope",
		"untie_embeddings_and_output_weights": true, "hidden_dropout": 0.0, "attention_dropout": 0.0, "seq_length": 4096, "micro_batch_size": 1, "sequence_parallel": true,
	}
	for _, set := range sets {
		for k, v := range set {
			all[k] = v
		}
	}
	v, err := document.FromGo(all)
	require.NoError(t, err)
	m, ok := v.Map()
	require.True(t, ok)
	return m
}

func read(t *testing.T, sets ...map[string]any) *projection.Plan {
	t.Helper()
	plan, err := projection.Read("model", params(t, sets...), projection.Cluster{DevicesPerNode: 8})
	require.NoError(t, err)
	return plan
}

// shape returns the parameters of a dense model with grouped queries.
func shape(layers, hidden, ffn, heads, groups, vocabulary int) map[string]any {
	return map[string]any{
		"num_layers": layers, "hidden_size": hidden, "ffn_hidden_size": ffn, "num_attention_heads": heads,
		"group_query_attention": true, "num_query_groups": groups, "vocab_size": vocabulary,
	}
}

// moe returns the parameters of experts in all layers.
func moe(experts, topk, ffn int) map[string]any {
	return map[string]any{"num_experts": experts, "moe_router_topk": topk, "moe_ffn_hidden_size": ffn}
}

var (
	latent = map[string]any{
		"multi_latent_attention": true, "group_query_attention": false, "qk_layernorm": true, "kv_lora_rank": 512,
		"qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
	}
	deepSeekV2Lite = []map[string]any{
		shape(27, 2048, 10944, 16, 16, 102400), latent, moe(64, 6, 1408),
		{"moe_layer_freq": "([0]*1+[1]*26)", "moe_shared_expert_intermediate_size": 2816},
	}
	deepSeekV3 = []map[string]any{
		shape(61, 7168, 18432, 128, 128, 129280), latent, moe(256, 8, 2048),
		{"q_lora_rank": 1536, "moe_layer_freq": "([0]*3+[1]*58)", "moe_shared_expert_intermediate_size": 2048},
	}
	llama8B = []map[string]any{shape(32, 4096, 14336, 32, 8, 128256)}
	qwen30B = []map[string]any{shape(48, 2048, 6144, 32, 4, 151936), moe(128, 8, 768), {"kv_channels": 128, "qk_layernorm": true}}
)

// TestPublishedCounts compares with the parameter counts that the model files of the authors have.
func TestPublishedCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sets []map[string]any
		want float64
	}{
		"Llama 2 7B":       {[]map[string]any{shape(32, 4096, 11008, 32, 32, 32000)}, 6_738_415_616},
		"Llama 2 13B":      {[]map[string]any{shape(40, 5120, 13824, 40, 40, 32000)}, 13_015_864_320},
		"Llama 2 70B":      {[]map[string]any{shape(80, 8192, 28672, 64, 8, 32000)}, 68_976_648_192},
		"Llama 3.1 8B":     {llama8B, 8_030_261_248},
		"Llama 3.1 70B":    {[]map[string]any{shape(80, 8192, 28672, 64, 8, 128256)}, 70_553_706_496},
		"Llama 3.1 405B":   {[]map[string]any{shape(126, 16384, 53248, 128, 8, 128256)}, 405_853_388_800},
		"Llama 3.2 1B":     {[]map[string]any{shape(16, 2048, 8192, 32, 8, 128256), {"untie_embeddings_and_output_weights": false}}, 1_235_814_400},
		"Qwen 2.5 7B":      {[]map[string]any{shape(28, 3584, 18944, 28, 4, 152064), {"add_qkv_bias": true}}, 7_615_616_512},
		"Qwen 3 8B":        {[]map[string]any{shape(36, 4096, 12288, 32, 8, 151936), {"qk_layernorm": true}}, 8_190_735_360},
		"Qwen 3 30B A3B":   {qwen30B, 30_532_122_624},
		"Qwen 3 235B A22B": {[]map[string]any{shape(94, 4096, 12288, 64, 4, 151936), moe(128, 8, 1536), {"kv_channels": 128, "qk_layernorm": true}}, 235_093_634_560},
		"Mixtral 8x7B":     {[]map[string]any{shape(32, 4096, 14336, 32, 8, 32000), moe(8, 2, 14336)}, 46_702_792_704},
		"DeepSeek V2 Lite": {deepSeekV2Lite, 15_706_484_224},
		"DeepSeek V3":      {deepSeekV3, 671_026_404_352},
		"GPT-2, 124M":      {[]map[string]any{shape(12, 768, 3072, 12, 12, 50257), gpt2}, 124_439_808},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, active := read(t, c.sets...).Model.Count()
			assert.InDelta(t, c.want, got, 0)
			assert.LessOrEqual(t, active, got)
		})
	}
}

var gpt2 = map[string]any{
	"swiglu": false, "add_bias_linear": true, "normalization": "LayerNorm", "position_embedding_type": "learned_absolute", "max_position_embeddings": 1024,
	"untie_embeddings_and_output_weights": false, "make_vocab_size_divisible_by": 1, "seq_length": 1024, "sequence_parallel": false,
}

// TestPublishedSteps compares with the times of steps that were published for A100s with InfiniBand
// of 200 Gb/s. The first one gives the rate of a device, and the others follow.
//
// Sources: the README of Megatron-LM (GPT-3 175B), and section 2.4 of arXiv:2201.11990 (530B). Both
// computed all layers again, as the published rates show.
func TestPublishedSteps(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/howto/before-a-run.md")
	require.NoError(t, err)
	a100, err := projection.FindDevice("A100")
	require.NoError(t, err)
	step := func(efficiency float64, layers, hidden, heads, stages, devices, batch int) float64 {
		plan, err := projection.Read("model", params(t, gpt2, shape(layers, hidden, 4*hidden, heads, heads, 50257), map[string]any{
			"seq_length": 2048, "max_position_embeddings": 2048, "make_vocab_size_divisible_by": 128, "global_batch_size": batch,
			"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": stages,
			"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1,
		}), projection.Cluster{Nodes: devices / 8, DevicesPerNode: 8})
		require.NoError(t, err)
		perf, err := plan.Performance(projection.Rates{BF16: a100.BF16, Efficiency: efficiency, HBM: a100.HBM, Inside: a100.Link, Between: 25e9})
		require.NoError(t, err)
		return perf.StepSeconds
	}
	low, high := 0.1, 1.0
	for range 50 {
		if middle := (low + high) / 2; step(middle, 96, 12288, 96, 16, 1024, 1536) > 32 {
			low = middle
		} else {
			high = middle
		}
	}
	assert.Contains(t, string(page), fmt.Sprintf("an efficiency of %.3f", low))
	for _, c := range []struct {
		devices int
		want    float64
	}{{2240, 60.1}, {2800, 50.2}, {3360, 44.4}} {
		got := step(low, 105, 20480, 128, 35, c.devices, 1920)
		row := fmt.Sprintf("| 530B | %d | 8 · 35 · %d | 1920 | %.1f s | %.1f s | %+.1f %% |\n", c.devices, c.devices/280, c.want, got, 100*(got/c.want-1))
		assert.Contains(t, string(page), strings.Replace(row, "-", "−", 1))
	}
}
