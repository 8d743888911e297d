package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/recordtest"
	"github.com/primus-fl/primus/runtime/config"
)

// BenchmarkLoadExperiment loads one recorded experiment with large presets, all of them in turn,
// and all with a cache as `primus config validate` does.
func BenchmarkLoadExperiment(b *testing.B) {
	inputs := recordtest.Inputs(b)
	golden, err := fs.Glob(os.DirFS(filepath.Join(recordtest.Dir(b), "golden")), "*.json")
	require.NoError(b, err)
	var all []string
	for _, name := range golden {
		if experiment := strings.ReplaceAll(strings.TrimSuffix(name, ".json"), "__", "/"); !incomplete[experiment] {
			all = append(all, experiment)
		}
	}
	presets, err := config.DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(b, err)
	options := config.Options{Formats: formats.All(), Root: inputs, Presets: []config.Root{presets}, Env: recordtest.Environment(nil)}
	load := func(b *testing.B, experiments []string, cached bool) {
		b.ReportAllocs()
		options := options
		for b.Loop() {
			if cached {
				options.Cache = &config.Cache{}
			}
			for _, experiment := range experiments {
				_, err := config.LoadExperiment(b.Context(), filepath.Join(inputs, experiment), options)
				require.NoError(b, err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N*len(experiments)), "ms/experiment")
	}
	b.Run("one", func(b *testing.B) { load(b, []string{"examples/megatron/exp_pretrain.yaml"}, false) })
	b.Run("all", func(b *testing.B) { load(b, all, false) })
	b.Run("all cached", func(b *testing.B) { load(b, all, true) })
}
