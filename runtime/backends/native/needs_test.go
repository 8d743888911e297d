package native_test

import (
	"testing"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program gets typed values, with the defaults of the backend. A wrong value is as if it were
// not given.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		give map[string]any
		want backend.Needs
	}{
		"defaults": {nil, backend.Needs{CollectiveTimeout: 10 * time.Minute}},
		"given": {
			map[string]any{"device": "opencl:1", "distributed_timeout_minutes": 0.5, "overlap_grad_reduce": true, "fp16": true, "window_attn_skip_freq": 2},
			backend.Needs{Device: "opencl:1", CollectiveTimeout: 30 * time.Second, Overlap: true, ScaledLoss: true},
		},
		"gather":     {map[string]any{"overlap_param_gather": true}, backend.Needs{CollectiveTimeout: 10 * time.Minute, Overlap: true}},
		"wrong":      {map[string]any{"device": 3, "distributed_timeout_minutes": "long", "fp16": "yes"}, backend.Needs{CollectiveTimeout: 10 * time.Minute}},
		"negative":   {map[string]any{"distributed_timeout_minutes": -1}, backend.Needs{CollectiveTimeout: 10 * time.Minute}},
		"very long":  {map[string]any{"distributed_timeout_minutes": 1e300}, backend.Needs{CollectiveTimeout: 1 << 62}},
		"blank name": {map[string]any{"device": " "}, backend.Needs{CollectiveTimeout: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := document.FromGo(tt.give)
			require.NoError(t, err)
			params, _ := v.Map()
			got := native.Factory().New().(backend.InProcess).Needs(backend.NewArgs(params))
			got.DeviceSource = ""
			assert.Equal(t, tt.want, got)
		})
	}
}

// Patches of phase build_args cannot change what the program has prepared before them: the device
// and the number of ranks. The run ends before it begins.
func TestPatchesOfWhatIsPrepared(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value any
		want  string
	}{
		{"device", "opencl:1", `patch p: device: given "opencl:1", want "" as before the patches of phase build_args`},
		{"tensor_model_parallel_size", 2, "tensor_model_parallel_size: given 2, want a divisor of the number of ranks, which is 1"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			l := newLab(t)
			l.patches = []patch.Patch{{ID: "p", Phase: patch.BuildArgs, Apply: func(c *patch.Context) error { return c.SetArg(tt.key, tt.value) }}}
			require.ErrorContains(t, l.train(t.Context(), "run"), tt.want)
			assert.NoDirExists(t, l.path("run"))
		})
	}
}
