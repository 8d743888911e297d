package native_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crossings counts calls whose operands the manager copied.
type crossings struct{ calls int }

func (c *crossings) OnEvent(e opmanager.Event) {
	if _, ok := e.(opmanager.CrossedDevice); ok {
		c.calls++
	}
}

// A run whose tensors all lie on a device trains as one in host memory does: bit for bit where the
// same impls serve copies of the operands.
func TestTrainOnADevice(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.model = name
			overrides := append(overrides, "train_iters=6", "ema_decay=0.9")
			require.NoError(t, l.train(t.Context(), "host", overrides...))
			far, crossed := fardevice.New(0), &crossings{}
			l.device, l.listeners = far, []opmanager.Listener{crossed}
			require.NoError(t, l.train(t.Context(), "far", overrides...))
			assert.Positive(t, crossed.calls)
			assert.Zero(t, far.Blocks(), "all memory of the device is released")
			host, onDevice := l.metrics("host"), l.metrics("far")
			for i := range host {
				assert.Equal(t, host[i].Loss, onDevice[i].Loss, i)
				assert.Equal(t, host[i].GradNorm, onDevice[i].GradNorm, i)
				assert.Equal(t, host[i].ValidLoss, onDevice[i].ValidLoss, i)
			}
			assert.Equal(t, weightsOf(t, l, "host"), weightsOf(t, l, "far"))
		})
	}
}

// weightsOf returns the weights in the last checkpoint of a run.
func weightsOf(t *testing.T, l *lab, run string) []byte {
	t.Helper()
	c, err := checkpoint.Open(t.Context(), l.path(run, "checkpoints"))
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(c.Path(), "model.safetensors"))
	require.NoError(t, err)
	return data
}

// What works in host memory works on a device, too.
func TestVariantsOnADevice(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, overrides := range map[string][]string{
		"adapters":  {"lora_rank=4"},
		"muon":      {"optimizer=muon"},
		"bf16":      {"bf16=true"},
		"fp16":      {"fp16=true"},
		"recompute": {"recompute_granularity=full", "recompute_method=uniform", "recompute_num_layers=1"},
		"z loss":    {"z_loss_coeff=0.001"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			overrides := append(overrides, "train_iters=3", "eval_interval=0", "save_interval=0")
			require.NoError(t, l.train(t.Context(), "host", overrides...))
			l.device = fardevice.New(0)
			require.NoError(t, l.train(t.Context(), "far", overrides...))
			host, far := l.metrics("host"), l.metrics("far")
			for i := range host {
				assert.Equal(t, host[i].Loss, far[i].Loss, i)
				assert.Equal(t, host[i].GradNorm, far[i].GradNorm, i)
			}
		})
	}
}

// A run on a device goes on from its checkpoint bit for bit, and a device that is lost leaves the
// last checkpoint whole.
func TestResumeOnADevice(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	l.device = fardevice.New(0)
	require.NoError(t, l.train(t.Context(), "whole", "train_iters=8"))
	far, quiet := fardevice.New(0), l.observer
	l.device = far
	l.observer = onStep{do: func(s backend.Step) {
		if s.Step == 6 {
			far.FailFrom(1)
		}
	}}
	err := l.train(t.Context(), "lost", "train_iters=8")
	require.ErrorContains(t, err, "the device is lost")
	l.device, l.observer = fardevice.New(0), quiet
	require.NoError(t, l.train(t.Context(), "lost", "train_iters=8"))
	whole, lost := l.metrics("whole"), l.metrics("lost")
	assert.Equal(t, whole[7].Loss, lost[len(lost)-1].Loss)
	assert.Equal(t, weightsOf(t, l, "whole"), weightsOf(t, l, "lost"))
}

// small is a device that describes itself, with little memory.
type small struct{ *fardevice.Backend }

func (small) Describe(int) (device.Description, error) {
	return device.Description{Name: "Small", Memory: 1 << 20}, nil
}

// A run that cannot fit the device is refused before anything is allocated, and says what it needs.
func TestMemoryOfADevice(t *testing.T) {
	l, far := newLab(t), fardevice.New(0)
	l.device = small{far}
	err := l.train(t.Context(), "run", "seq_length=1024")
	for _, part := range []string{"memory: training takes at least", "activations", "the device has 1", ", Small): lower micro_batch_size"} {
		require.ErrorContains(t, err, part)
	}
	assert.Zero(t, far.Copies().In)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=1", "eval_interval=0", "micro_batch_size=1"))
}
