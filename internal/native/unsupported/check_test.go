package unsupported_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/unsupported"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// argument is an argument of Megatron-LM with its default.
type argument struct {
	Dest    string `json:"dest"`
	Default any    `json:"default"`
}

// megatron returns the arguments of Megatron-LM.
func megatron(t *testing.T) []argument {
	t.Helper()
	text, err := os.ReadFile("../../../../shared/fixtures/backends/megatron_argparse.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared with the arguments of Megatron-LM is absent")
	}
	require.NoError(t, err)
	var all []argument
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// own returns the names of the parameters of a struct.
func own(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			names = append(names, own(f.Type)...)
		} else {
			names = append(names, f.Tag.Get("param"))
		}
	}
	return names
}

// Each argument of Megatron is in exactly one of three lists: the trainer has it, it decides what a
// run computes, or it does not.
func TestEveryArgumentOfMegatronIsDecided(t *testing.T) {
	text, err := os.ReadFile("testdata/harmless.txt")
	require.NoError(t, err)
	harmless := strings.Fields(string(text))
	has := own(reflect.TypeFor[native.Args]())
	for _, name := range slices.Concat(has, harmless) {
		assert.False(t, unsupported.Known(name), "%s is in two lists", name)
	}
	for _, a := range megatron(t) {
		if !unsupported.Known(a.Dest) && !slices.Contains(has, a.Dest) {
			assert.True(t, slices.Contains(harmless, a.Dest), a.Dest)
		}
	}
}

// Megatron's defaults pass, except where they ask for another model.
func TestDefaultsOfMegatron(t *testing.T) {
	run := unsupported.Run{Config: llama()}
	for _, a := range megatron(t) {
		v, err := document.FromGo(a.Default)
		require.NoError(t, err)
		err = unsupported.Check(a.Dest, v, run)
		if slices.Contains([]string{"swiglu", "group_query_attention", "use_rotary_position_embeddings"}, a.Dest) {
			assert.Error(t, err, a.Dest)
		} else {
			assert.NoError(t, err)
		}
	}
}

// llama is Llama with grouped queries.
func llama() model.Config {
	return model.Config{
		NumLayers: 4, HiddenSize: 192, FFNHiddenSize: 512, NumAttentionHeads: 6, NumQueryGroups: 2, VocabSize: 256, SeqLength: 128,
		RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.02,
	}
}

func TestCheck(t *testing.T) {
	gpt2 := llama()
	gpt2.PositionEmbedding, gpt2.Activation, gpt2.NumQueryGroups, gpt2.AddBiasLinear = model.LearnedAbsolute, model.GELU, 6, true
	mixture := llama()
	mixture.NumExperts = 8
	for _, tt := range []struct {
		name    string
		value   any
		config  model.Config
		refused bool
	}{
		{"fp16_lm_cross_entropy", true, llama(), true},
		{"fp16_lm_cross_entropy", false, llama(), false},
		{"fp16_lm_cross_entropy", nil, llama(), false},
		{"fp16_lm_cross_entropy", "false", llama(), true},
		{"fp4", "e2m1", llama(), true},
		{"fp8_wgrad", true, llama(), false},
		{"exp_avg_dtype", "fp32", llama(), false},
		{"exp_avg_dtype", "bf16", llama(), true},
		{"model_parallel_size", 2, llama(), true},
		{"model_parallel_size", 1, llama(), false},
		{"model_parallel_size", 1.0, llama(), false},
		{"decoupled_lr", 0.1, llama(), true},
		{"vocab_file", "vocab.json", llama(), true},
		{"qk_l2_norm", true, llama(), true},
		{"iterations_to_skip", []any{}, llama(), false},
		{"iterations_to_skip", []any{16, 17}, llama(), true},
		{"swiglu", true, llama(), false},
		{"swiglu", false, llama(), true},
		{"swiglu", true, gpt2, true},
		{"swiglu", false, gpt2, false},
		{"openai_gelu", true, gpt2, false},
		{"openai_gelu", true, llama(), true},
		{"group_query_attention", false, llama(), true},
		{"group_query_attention", false, gpt2, false},
		{"use_rotary_position_embeddings", true, llama(), false},
		{"use_rotary_position_embeddings", true, gpt2, true},
		{"no_rope_freq", 2, llama(), true},
		{"moe_router_score_function", "sigmoid", llama(), false},
		{"moe_router_score_function", "sigmoid", mixture, true},
		{"moe_router_load_balancing_type", "none", mixture, false},
		{"log_throughput", true, llama(), false},
		{"no_such_name", 1, llama(), false},
	} {
		v, err := document.FromGo(tt.value)
		require.NoError(t, err)
		err = unsupported.Check(tt.name, v, unsupported.Run{Config: tt.config})
		assert.Equal(t, tt.refused, err != nil, "%s=%v: %v", tt.name, tt.value, err)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), tt.name+": given "), err)
		}
	}
}
