package native_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Models that were written in PyTorch, from the papers and for this test alone,
// make the same steps of the same batches: forward, gradients of accumulated
// micro-batches, clipping, schedule and AdamW.
func TestPyTorchReplaysARun(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	python := primustest.Python(t, "torch", "numpy")
	const steps = 20
	labs, runs := map[string]*lab{}, []string{}
	for name, tt := range map[string]struct {
		model     string
		overrides []string
	}{
		"grouped queries": {"llama_2M", nil},
		"tied embeddings": {"llama_2M", []string{"untie_embeddings_and_output_weights=false", "num_query_groups=4"}},
		"gpt2":            {"gpt2_10M", []string{"num_query_groups=4"}},
		"qwen 3":          {"llama_2M", []string{"qk_layernorm=true", "kv_channels=16", "untie_embeddings_and_output_weights=false"}},
		"qwen 2":          {"llama_2M", []string{"add_qkv_bias=true"}},
		"llama 3": {"llama_2M", []string{
			"use_rope_scaling=true", "rope_scaling_factor=4", "rope_scaling_original_max_position_embeddings=32", "rotary_base=500",
		}},
		"stretched positions": {"llama_2M", []string{"rotary_seq_len_interpolation_factor=4"}},
		"mistral":             {"llama_2M", []string{"window_size=[6,0]"}},
		"attention bias":      {"llama_2M", []string{"attention_bias=true"}},
		"olmo 2":              {"llama_2M", []string{"norm_placement=post", "qk_layernorm=true", "qk_layernorm_whole=true"}},
		"gemma 2": {"llama_2M", []string{
			"activation_func=geglu", "norm_placement=both", "layernorm_zero_centered_gamma=true", "query_pre_attn_scalar=9",
			"attn_logit_softcapping=0.5", "final_logit_softcapping=1.5", "embedding_multiplier=4", "hidden_size=16", "kv_channels=8",
			"window_size=[6,0]", "window_attn_skip_freq=2", "untie_embeddings_and_output_weights=false",
		}},
		"gemma 3": {"llama_2M", []string{
			"activation_func=geglu", "norm_placement=both", "layernorm_zero_centered_gamma=true", "qk_layernorm=true", "query_pre_attn_scalar=9",
			"rope_local_base_freq=100", "embedding_multiplier=4", "hidden_size=16", "kv_channels=8", "window_size=[6,0]", "window_attn_skip_freq=2",
			"rotary_seq_len_interpolation_factor=2", "untie_embeddings_and_output_weights=false",
		}},
		"exact gelu":       {"llama_2M", []string{"activation_func=geglu_erf"}},
		"gpt2, exact gelu": {"gpt2_10M", []string{"num_query_groups=4", "activation_func=gelu_erf"}},
		"mlp bias":         {"llama_2M", []string{"mlp_bias=true"}},
		"longrope": {"llama_2M", []string{
			"position_embedding_type=longrope", "rope_scaling_original_max_position_embeddings=16", "rope_scaling_attention_factor=1.1",
			"kv_channels=8", "rope_scaling_short_factor=[1,1,1,1]", "rope_scaling_long_factor=[1,1.5,2.5,4]",
		}},
		"adapters":         {"llama_2M", []string{"lora_rank=4", "lora_alpha=40"}},
		"adapters of some": {"gpt2_10M", []string{"num_query_groups=4", "lora_rank=3", "lora_target_modules=['c_attn','c_proj']"}},
		"yarn": {"llama_2M", []string{
			"position_embedding_type=yarn", "yarn_rotary_scaling_factor=4", "yarn_original_max_position_embeddings=32", "yarn_beta_fast=4", "rotary_base=500",
		}},
		"windows of some layers": {"llama_2M", []string{"add_qkv_bias=true", "window_size=[6,0]", "window_attn_skip_freq=2"}},
		"qwen 3 moe":             {"moe_8x3M", []string{"moe_ffn_hidden_size=16", "micro_batch_size=4", "qk_layernorm=true", "kv_channels=16"}},
		"single experts":         {"moe_8x3M", []string{"moe_ffn_hidden_size=16", "micro_batch_size=4", "moe_router_topk=1", "moe_router_pre_softmax=true"}},
		"weights before choice":  {"moe_8x3M", []string{"moe_ffn_hidden_size=16", "micro_batch_size=4", "moe_router_pre_softmax=true"}},
		"mixture of experts":     {"moe_8x3M", []string{"moe_ffn_hidden_size=16", "micro_batch_size=4"}},
	} {
		l := newLab(t)
		l.model = tt.model
		require.NoError(t, l.train(t.Context(), "run", append([]string{
			"save_initial=true", "dump_batches=20", "train_iters=20", "save_interval=0", "eval_interval=0",
			"lr=2e-3", "min_lr=1e-4", "lr_warmup_iters=5", "init_method_std=0.06",
			"adam_beta1=0.9", "adam_beta2=0.95", "adam_eps=1e-8", "weight_decay=0.1", "clip_grad=1",
		}, tt.overrides...)...))
		labs[name] = l
		runs = append(runs, l.path("run"))
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{
		"testdata/replay.py", "--lr=2e-3", "--min-lr=1e-4", "--warmup=5", "--decay=20",
		"--beta1=0.9", "--beta2=0.95", "--adam-eps=1e-8", "--weight-decay=0.1", "--clip=1",
	}, runs...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1") // idle threads would spin beside other tests
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var replays map[string]struct {
		Losses, Norms []float64
		Distances     map[string]float64
	}
	require.NoError(t, json.Unmarshal(out, &replays))
	for name, l := range labs {
		t.Run(name, func(t *testing.T) {
			replay := replays[l.path("run")]
			records := l.metrics("run")
			require.Len(t, records, steps)
			require.Len(t, replay.Losses, steps)
			for i, r := range records {
				assert.InEpsilon(t, replay.Losses[i], r.Loss, 2e-5, "loss of step %d", i+1)
				assert.InEpsilon(t, replay.Norms[i], r.GradNorm, 1e-4, "gradient norm of step %d", i+1)
			}
			assert.Greater(t, len(replay.Distances), 10)
			for weight, distance := range replay.Distances {
				most := 1e-4
				if strings.HasSuffix(weight, ".c_attn.bias") {
					most = 1e-2 // the gradient of a bias of all keys is 0, and AdamW makes steps of its rounding
				}
				assert.Less(t, distance, most, weight)
			}
		})
	}
}
