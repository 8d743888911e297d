package native_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The kernels of one machine and those of another differ in the order of sums and in where they
// round, and in nothing else. The losses are those of amd64 with AVX-512.
func TestLossesOfEveryMachine(t *testing.T) {
	want := []float64{
		5.7759667, 4.5274474, 3.7504426, 4.5939217, 3.3650219,
		3.2507363, 2.7313275, 2.5967045, 2.2594185, 1.8805790,
		1.6941207, 1.7100355, 1.6906496, 1.4943668, 1.5594484,
		1.4253782, 1.4095566, 1.3221882, 1.2215045, 1.2033039,
	}
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "llama_2M", "num_layers=4", "hidden_size=192", "ffn_hidden_size=512",
		"num_attention_heads=6", "micro_batch_size=4", "train_iters=20", "eval_interval=20", "save_interval=20"))
	var got []float64
	for _, step := range l.metrics("llama_2M") {
		got = append(got, step.Loss)
	}
	require.Len(t, got, len(want), "%v", got)
	assert.InDeltaSlice(t, want, got, 1e-5, "%v", got)
}
