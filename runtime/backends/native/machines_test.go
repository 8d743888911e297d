package native_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// The kernels of one machine and those of another differ in the order of sums and in where they
// round, and in nothing else. The losses are those of amd64 with AVX-512. The learning rate is low:
// Adam moves a weight whose gradient is mere rounding as far as one whose gradient is large.
func TestLossesOfEveryMachine(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	want := []float64{
		5.7759667, 5.1324928, 4.6867655, 4.2420703, 4.0492622,
		3.4737979, 3.5362811, 3.3505501, 3.1629588, 2.8596400,
		2.7043720, 2.6745513, 2.6564913, 2.5576459, 2.7317384,
		2.5649896, 2.4539720, 2.5616859, 2.4783126, 2.3986236,
	}
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "llama_2M", "num_layers=4", "hidden_size=192", "ffn_hidden_size=512",
		"num_attention_heads=6", "micro_batch_size=4", "lr=3e-4", "min_lr=3e-5", "train_iters=20", "eval_interval=20", "save_interval=20"))
	var got []float64
	for _, step := range l.metrics("llama_2M") {
		got = append(got, step.Loss)
	}
	require.Len(t, got, len(want), "%v", got)
	assert.InDeltaSlice(t, want, got, 1e-5, "%v", got)
}
