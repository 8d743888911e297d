package metrics_test

import (
	"testing"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcess(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	p, err := metrics.NewProcess(reg, metrics.Build{Version: "1.2.3", Revision: "abc", GoVersion: "go1.26"})
	require.NoError(t, err)
	n, err := testutil.GatherAndCount(reg, "primus_plugin_info")
	require.NoError(t, err)
	assert.Zero(t, n, "nobody lists plugins yet")

	rejected := metrics.Plugin{Name: "lib\xff.so", State: metrics.PluginRejected}
	p.WatchPlugins(plugins{{"openblas", "0.3.21", metrics.PluginCompiledIn, true}, {"acme", "", metrics.PluginIsolated, false}, rejected, rejected})
	n, err = testutil.GatherAndCount(reg, "primus_plugin_info")
	require.NoError(t, err)
	assert.Equal(t, 3, n, "what is alike is told once")
	assert.InDelta(t, 1, value(t, reg, "primus_build_info", map[string]string{"version": "1.2.3", "revision": "abc", "goversion": "go1.26"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_plugin_info", map[string]string{"plugin": "openblas", "version": "0.3.21", "state": "compiled_in", "usable": "true"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_plugin_info", map[string]string{"plugin": "acme", "version": "", "state": "isolated", "usable": "false"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_plugin_info", map[string]string{"plugin": "lib?.so", "version": "", "state": "rejected", "usable": "false"}), 0)
	assert.Positive(t, value(t, reg, "go_goroutines", nil))
	assert.Positive(t, value(t, reg, "process_resident_memory_bytes", nil))

	p.Close()
	p.Close()
	n, err = testutil.GatherAndCount(reg)
	require.NoError(t, err)
	assert.Zero(t, n)
}
