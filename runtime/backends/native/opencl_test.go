package native_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/vendors/opencl"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Models train on an OpenCL device as on the processor, without a copy of an operand to it, and
// twice with the same bits.
func TestTrainOnOpenCL(t *testing.T) {
	device := opencltest.Backend(t)
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.model, l.sources = name, []opregistry.Source{opencl.Source()}
			overrides := append(overrides, "train_iters=6", "eval_interval=0", "save_interval=3")
			require.NoError(t, l.train(t.Context(), "host", overrides...))
			crossed := &crossings{}
			l.device, l.listeners = device, []opmanager.Listener{crossed}
			quiet, inUse := l.observer, int64(0)
			l.observer = onStep{do: func(s backend.Step) { inUse = s.MemoryBytes }}
			require.NoError(t, l.train(t.Context(), "opencl", overrides...))
			l.observer = quiet
			assert.Zero(t, crossed.calls, "every op has an impl for the device")
			assert.Greater(t, inUse, int64(1<<16), "weights, gradients and moments are in the memory of the device")
			require.NoError(t, l.train(t.Context(), "parts", append(overrides, "train_iters=3", "lr_decay_iters=6")...))
			require.NoError(t, l.train(t.Context(), "parts", append(overrides, "lr_decay_iters=6")...))
			host, onDevice := l.metrics("host"), l.metrics("opencl")
			require.Len(t, onDevice, len(host))
			for i := range host {
				assert.InEpsilon(t, host[i].Loss, onDevice[i].Loss, 1e-4, i)
				assert.InEpsilon(t, host[i].GradNorm, onDevice[i].GradNorm, 1e-3, i)
			}
			assert.Equal(t, weightsOf(t, l, "opencl"), weightsOf(t, l, "parts"), "a run in two parts has the bits of one")
		})
	}
}

// No precision needs a copy of an operand to the processor.
func TestPrecisionsOnOpenCL(t *testing.T) {
	device := opencltest.Backend(t)
	runs := map[string][]string{
		"llama_2M fp8 delayed": {"bf16=true", "fp8=hybrid", "fp8_recipe=delayed"},
		"llama_2M fp8 mxfp8":   {"bf16=true", "fp8=e4m3", "fp8_recipe=mxfp8"},
	}
	for name, overrides := range families() {
		runs[name+" bf16"] = append(overrides, "bf16=true")
	}
	for name, overrides := range runs {
		t.Run(name, func(t *testing.T) {
			l, crossed := newLab(t), &crossings{}
			l.model, _, _ = strings.Cut(name, " ")
			l.sources = []opregistry.Source{opencl.Source()}
			overrides := append(overrides, "train_iters=3", "eval_interval=0", "save_interval=0")
			require.NoError(t, l.train(t.Context(), "host", overrides...))
			l.device, l.listeners = device, []opmanager.Listener{crossed}
			require.NoError(t, l.train(t.Context(), "opencl", overrides...))
			assert.Zero(t, crossed.calls, "every op has an impl for the device")
			host, onDevice := l.metrics("host"), l.metrics("opencl")
			for i := range host {
				assert.InEpsilon(t, host[i].Loss, onDevice[i].Loss, 1e-2, i)
			}
		})
	}
}
