package configs_test

import (
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/runtime/config"
)

// architecture are the parameters that describe a native model.
type architecture struct {
	Layers      int     `param:"num_layers,required"`
	Hidden      int     `param:"hidden_size,required"`
	FFN         int     `param:"ffn_hidden_size,required"`
	Heads       int     `param:"num_attention_heads,required"`
	QueryGroups int     `param:"num_query_groups,required"`
	Vocabulary  int     `param:"vocab_size,required"`
	SeqLength   int     `param:"seq_length,required"`
	RotaryBase  float64 `param:"rotary_base"`
	NormEpsilon float64 `param:"norm_epsilon,required"`
	InitStd     float64 `param:"init_method_std,required"`
	Untie       bool    `param:"untie_embeddings_and_output_weights,required"`
	family
}

// family are the parameters that say how a native model differs from Llama.
type family struct {
	Normalization    string  `param:"normalization"`
	Positions        string  `param:"position_embedding_type"`
	MaxPositions     int     `param:"max_position_embeddings"`
	Activation       string  `param:"activation_func"`
	Bias             bool    `param:"add_bias_linear"`
	HiddenDropout    float64 `param:"hidden_dropout"`
	AttentionDropout float64 `param:"attention_dropout"`
	Experts          int     `param:"num_experts"`
	Topk             int     `param:"moe_router_topk"`
	ExpertFFN        int     `param:"moe_ffn_hidden_size"`
	AuxLoss          float64 `param:"moe_aux_loss_coeff"`
	QKNorm           bool    `param:"qk_layernorm"`
	KVChannels       int     `param:"kv_channels"`
	RopeScaling      bool    `param:"use_rope_scaling"`
	RopeFactor       float64 `param:"rope_scaling_factor"`
	RopeContext      int     `param:"rope_scaling_original_max_position_embeddings"`
}

// training are the parameters of native training.
type training struct {
	Model         string  `param:"model,required"`
	Iters         int     `param:"train_iters,required"`
	GlobalBatch   int     `param:"global_batch_size,required"`
	MicroBatch    int     `param:"micro_batch_size,required"`
	LR            float64 `param:"lr,required"`
	MinLR         float64 `param:"min_lr,required"`
	DecayStyle    string  `param:"lr_decay_style,required"`
	WarmupIters   int     `param:"lr_warmup_iters,required"`
	DecayIters    *int    `param:"lr_decay_iters"`
	WeightDecay   float64 `param:"weight_decay,required"`
	Beta1         float64 `param:"adam_beta1,required"`
	Beta2         float64 `param:"adam_beta2,required"`
	Epsilon       float64 `param:"adam_eps,required"`
	ClipGrad      float64 `param:"clip_grad,required"`
	Seed          uint64  `param:"seed,required"`
	EvalInterval  int     `param:"eval_interval,required"`
	EvalIters     int     `param:"eval_iters,required"`
	FinalWindows  int     `param:"final_eval_windows,required"`
	LogInterval   int     `param:"log_interval,required"`
	Save          *string `param:"save"`
	Load          *string `param:"load"`
	SaveInterval  int     `param:"save_interval,required"`
	SaveInitial   bool    `param:"save_initial,required"`
	DumpBatches   int     `param:"dump_batches,required"`
	DataPath      *string `param:"train_data_path"`
	ValidFraction float64 `param:"valid_fraction,required"`
	MaxBytes      int64   `param:"train_data_max_bytes"`
}

func presets() []config.Root { return []config.Root{{Name: "embedded", FS: configs.FS()}} }

func noEnv(string) (string, bool) { return "", false }

func TestExamplesLoad(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob(filepath.Join("..", "..", "examples", "native", "configs", "*-pretrain.yaml"))
	require.NoError(t, err)
	require.Len(t, examples, 8)
	want := map[string]architecture{
		"llama_2M.yaml":   {4, 192, 512, 6, 2, 256, 256, 10000, 1e-5, 0.04, true, family{}},
		"llama_6M.yaml":   {6, 288, 768, 6, 6, 512, 256, 10000, 1e-5, 0.02, true, family{}},
		"llama_30M.yaml":  {8, 512, 1376, 8, 8, 4096, 512, 10000, 1e-5, 0.02, true, family{}},
		"llama_100M.yaml": {12, 768, 2048, 12, 4, 32000, 512, 10000, 1e-5, 0.02, false, family{}},
		"gpt2_10M.yaml": {8, 320, 1280, 5, 5, 256, 256, 0, 1e-5, 0.02, false, family{
			Normalization: "LayerNorm", Positions: "learned_absolute", MaxPositions: 256, Activation: "gelu", Bias: true,
		}},
		"qwen_6M.yaml":   {6, 288, 768, 6, 2, 256, 256, 1e6, 1e-6, 0.02, false, family{QKNorm: true, KVChannels: 64}},
		"llama3_5M.yaml": {6, 288, 768, 6, 2, 256, 256, 5e5, 1e-5, 0.02, false, family{RopeScaling: true, RopeFactor: 32, RopeContext: 8192}},
		"moe_8x3M.yaml":  {4, 256, 768, 8, 4, 256, 256, 10000, 1e-5, 0.02, true, family{Experts: 8, Topk: 2, ExpertFFN: 768, AuxLoss: 1e-2}},
	}
	for _, example := range examples {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			exp, err := config.LoadExperiment(t.Context(), example, config.Options{Formats: formats.All(), Presets: presets(), Env: noEnv, Module: "pre_trainer"})
			require.NoError(t, err)
			assert.Empty(t, exp.Report.Warnings)
			assert.Empty(t, exp.Report.Collisions)
			assert.Equal(t, "local", exp.WorkGroup)
			name, ok := exp.Platform.Get("name")
			require.True(t, ok)
			assert.Equal(t, "local", name.Text())

			module, err := exp.Module("pre_trainer")
			require.NoError(t, err)
			assert.Equal(t, "native", module.Framework)
			var got struct {
				architecture
				training
			}
			_, err = document.Decode(module.Params, &got)
			require.NoError(t, err)
			assert.Equal(t, want[module.Model], got.architecture)
			assert.Zero(t, got.Hidden%got.Heads)
			assert.Zero(t, got.Heads%got.QueryGroups)
			assert.Zero(t, got.GlobalBatch%got.MicroBatch)
			assert.Less(t, got.WarmupIters, got.Iters)
			assert.Nil(t, got.Save)
		})
	}
}

func TestPostTrainingExamples(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]string{"llama_2M-sft": "sft", "llama_2M-lora": "sft", "llama_2M-dpo": "dpo"} {
		exp, err := config.LoadExperiment(t.Context(), filepath.Join("..", "..", "examples", "native", "configs", name+".yaml"), config.Options{
			Formats: formats.All(), Presets: presets(), Env: noEnv, Module: "post_trainer",
		})
		require.NoError(t, err)
		assert.Empty(t, exp.Report.Warnings)
		assert.Empty(t, exp.Report.Collisions)
		module, err := exp.Module("post_trainer")
		require.NoError(t, err)
		got, ok := module.Params.Lookup("stage")
		require.True(t, ok)
		assert.Equal(t, stage, got.Text())
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	exp, err := config.LoadExperiment(t.Context(), filepath.Join("testdata", "minimal.yaml"), config.Options{Formats: formats.All(), Presets: presets(), Env: noEnv})
	require.NoError(t, err)
	var got training
	_, err = document.Decode(exp.Modules[0].Params, &got)
	require.NoError(t, err)
	assert.Equal(t, training{
		Model: "llama_2M", Iters: 400, GlobalBatch: 4, MicroBatch: 4, LR: 3e-3, MinLR: 3e-4, DecayStyle: "cosine", WarmupIters: 20,
		WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, ClipGrad: 1, Seed: 1234, EvalInterval: 100, EvalIters: 4, FinalWindows: 512,
		LogInterval: 10, SaveInterval: 100, ValidFraction: 0.05,
	}, got)
	name, _ := exp.Platform.Get("name")
	assert.Equal(t, "azure", name.Text(), "the platform of experiments that name none")
}

// TestModelPresetsDescribeTheModel guards the merge rule: a key of the module preset would silently
// replace the model's.
func TestModelPresetsDescribeTheModel(t *testing.T) {
	t.Parallel()
	models, err := fs.Glob(configs.FS(), "models/native/*.yaml")
	require.NoError(t, err)
	require.Len(t, models, 9)
	for _, file := range models {
		if filepath.Base(file) == "hf.yaml" {
			continue // the folder of load_hf describes the model
		}
		exp, err := config.LoadExperiment(t.Context(), filepath.Join("testdata", "minimal.yaml"), config.Options{
			Formats: formats.All(),
			Presets: presets(), Env: func(string) (string, bool) { return filepath.Base(file), true },
		})
		require.NoError(t, err)
		fields := reflect.TypeFor[architecture]()
		for i := range fields.NumField() {
			key, required := strings.CutSuffix(fields.Field(i).Tag.Get("param"), ",required")
			if !required {
				continue
			}
			origin, ok := exp.Modules[0].Params.Origin(key)
			require.True(t, ok, key)
			assert.Equal(t, "embedded/"+file, origin.File, key)
		}
	}
}
