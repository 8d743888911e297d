package native_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Models train on an OpenCL device as on the processor, without a copy of an operand to it, and
// twice with the same bits.
func TestTrainOnOpenCL(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	dev := opencltest.Backend(t)
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.model, l.sources = name, []opregistry.Source{opencl.Source()}
			overrides := append(overrides, "train_iters=6", "eval_interval=0", "save_interval=3")
			require.NoError(t, l.train(t.Context(), "host", overrides...))
			crossed, seen := &crossings{}, &ended{}
			l.device, l.listeners = dev, []opmanager.Listener{crossed}
			quiet := l.observer
			l.observer = seen
			require.NoError(t, l.train(t.Context(), "opencl", overrides...))
			l.observer = quiet
			assert.Zero(t, crossed.calls, "every op has an impl for the device")
			checkUse(t, seen)
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
	primustest.Sequential(t, "it trains again and again")
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

// checkUse checks what a run says of its device.
func checkUse(t *testing.T, seen *ended) {
	t.Helper()
	u := seen.result.Device
	require.NotNil(t, u)
	assert.Equal(t, "opencl:0", u.Device)
	assert.NotEmpty(t, u.Description.Name)
	assert.Greater(t, u.Memory.Peak, uint64(1<<16), "weights, gradients and moments are in the memory of the device")
	assert.Greater(t, seen.step.MemoryBytes, int64(1<<16))
	require.NotNil(t, seen.step.Device)
	assert.Positive(t, seen.step.Device.Commands)
	assert.Positive(t, seen.step.Device.Busy)
	assert.Positive(t, u.Steps.Busy)
	assert.Positive(t, u.StepTime)
	worked := map[string]device.Work{}
	for _, o := range u.Ops {
		assert.Positive(t, o.Work.Commands, o.Op)
		worked[o.Op] = o.Work
	}
	for _, op := range []string{"generic_gemm", "fused_attn_bwd", "cross_entropy_fwd", "multi_tensor_adam", ""} {
		assert.Positive(t, worked[op].Busy, op)
	}
}
