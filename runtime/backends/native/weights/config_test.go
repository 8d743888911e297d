package weights_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/runtime/backends/native/weights"
)

func TestParseConfigNamesWhatIsNotSupported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class string
		key   string
		value any
		want  string
	}{
		{"llama", "model_type", "falcon", `model_type: got "falcon", want one of gpt2, llama`},
		{"llama", "hidden_act", "relu", `hidden_act: got "relu", want silu or swish`},
		{"llama", "hidden_size", nil, "hidden_size: got 0, want a number from 1"},
		{"llama", "hidden_size", 1 << 40, "hidden_size: got 1099511627776, want a number from 1"},
		{"llama", "hidden_size", 1.5, "hidden_size: got 1.5, want a whole number"},
		{"llama", "hidden_size", 18, "a multiple of num_attention_heads 4"},
		{"llama", "vocab_size", map[string]any{"a": 1}, `vocab_size: got {"a":1}, want a whole number`},
		{"gpt2", "activation_function", "gelu", `activation_function: got "gelu", want gelu_new or gelu_pytorch_tanh`},
		{"gpt2", "scale_attn_weights", false, "scale_attn_weights: got false, want true"},
	} {
		config := architectures()[tt.class].HFConfig()
		config[tt.key] = tt.value
		text, err := json.Marshal(config)
		require.NoError(t, err)
		_, err = weights.ParseConfig(text)
		assert.ErrorContains(t, err, tt.want)
	}
	_, err := weights.ParseConfig([]byte("[]"))
	assert.ErrorContains(t, err, "not a JSON object")
}

func FuzzParseConfig(f *testing.F) {
	for _, cfg := range architectures() {
		text, err := json.Marshal(cfg.HFConfig())
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := weights.ParseConfig(text)
		if err == nil {
			assert.NoError(t, c.Validate())
		}
	})
}
