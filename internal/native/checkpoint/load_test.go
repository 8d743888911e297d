package checkpoint_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

const (
	qProj = "model.layers.0.self_attn.q_proj.weight"
	norm  = "model.norm.weight"
)

func modelFile(t *testing.T) *safetensors.File {
	t.Helper()
	q, err := safetensors.FromSlice(qProj, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	n, err := safetensors.FromSlice(norm, []float32{5, 6})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, []safetensors.Entry{q, n}, nil))
	f, err := safetensors.NewFile(t.Context(), "model.safetensors", bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return f
}

func zeros[T tensor.Element](t *testing.T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(make([]T, tensor.Shape(shape).NumElements()), shape...)
	require.NoError(t, err)
	return x
}

func TestLoadFillsTheModel(t *testing.T) {
	t.Parallel()
	into := map[string]*tensor.Tensor{qProj: zeros[float32](t, 2, 2), norm: zeros[float32](t, 2)}
	require.NoError(t, checkpoint.Load(modelFile(t), into))
	assert.Equal(t, []float32{1, 2, 3, 4}, tensor.Data[float32](into[qProj]))
	assert.Equal(t, []float32{5, 6}, tensor.Data[float32](into[norm]))
}

func TestLoadOfAnotherConfiguration(t *testing.T) {
	t.Parallel()
	const other = "model.layers.1.self_attn.q_proj.weight"
	for _, tt := range []struct {
		name string
		into map[string]*tensor.Tensor
		want []string
	}{
		{
			"another shape",
			map[string]*tensor.Tensor{qProj: zeros[float32](t, 4, 4), norm: zeros[float32](t, 2)},
			[]string{"model.safetensors: tensor " + qProj + " has shape [2 2], the model wants [4 4]", "another configuration (compare hidden_size, num_attention_heads"},
		},
		{
			"another shape of a norm",
			map[string]*tensor.Tensor{qProj: zeros[float32](t, 2, 2), norm: zeros[float32](t, 3)},
			[]string{norm, "(compare hidden_size)"},
		},
		{
			"another dtype",
			map[string]*tensor.Tensor{qProj: zeros[tensor.BFloat16](t, 2, 2), norm: zeros[float32](t, 2)},
			[]string{"has dtype f32, the model wants bf16"},
		},
		{
			"another dtype and shape",
			map[string]*tensor.Tensor{qProj: zeros[tensor.BFloat16](t, 2), norm: zeros[float32](t, 2)},
			[]string{"has f32 [2 2], the model wants bf16 [2]"},
		},
		{
			"more layers in the model",
			map[string]*tensor.Tensor{qProj: zeros[float32](t, 2, 2), norm: zeros[float32](t, 2), other: zeros[float32](t, 2, 2)},
			[]string{"has no tensor " + other, "num_layers"},
		},
		{
			"fewer layers in the model",
			map[string]*tensor.Tensor{norm: zeros[float32](t, 2)},
			[]string{"tensor " + qProj + " has f32 [2 2], the model has no such tensor", "num_layers"},
		},
		{
			"untied output weights in the model",
			map[string]*tensor.Tensor{qProj: zeros[float32](t, 2, 2), norm: zeros[float32](t, 2), "lm_head.weight": zeros[float32](t, 2, 2)},
			[]string{"has no tensor lm_head.weight", "untie_embeddings_and_output_weights"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := checkpoint.Load(modelFile(t), tt.into)
			var config *checkpoint.ConfigError
			require.ErrorAs(t, err, &config)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			for name, x := range tt.into {
				for _, v := range x.Float64s() {
					assert.Zero(t, v, "%s was written", name)
				}
			}
		})
	}
}

func TestLoadIntoNil(t *testing.T) {
	t.Parallel()
	err := checkpoint.Load(modelFile(t), map[string]*tensor.Tensor{qProj: nil})
	assert.ErrorContains(t, err, "nil tensor")
}

// Weights of other programs are refused in so many words.
func TestWeightsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "model.safetensors")
	write(t, file)
	for _, path := range []string{dir, file} {
		_, err := checkpoint.Open(t.Context(), path)
		require.ErrorContains(t, err, "load_hf begins with weights that other programs have saved")
	}
}
