package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkLoadExperiment loads one of the largest recorded experiments, and all of them in turn.
func BenchmarkLoadExperiment(b *testing.B) {
	inputs := unpackInputs(b)
	golden, err := fs.Glob(os.DirFS(filepath.Join(fixtureDir(b), "golden")), "*.json")
	require.NoError(b, err)
	var all []string
	for _, name := range golden {
		if experiment := strings.ReplaceAll(strings.TrimSuffix(name, ".json"), "__", "/"); !incomplete[experiment] {
			all = append(all, experiment)
		}
	}
	presets, err := DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(b, err)
	options := Options{Root: inputs, Presets: []Root{presets}, Env: fixtureEnv(nil)}
	load := func(b *testing.B, experiments []string) {
		b.ReportAllocs()
		for b.Loop() {
			for _, experiment := range experiments {
				_, err := LoadExperiment(filepath.Join(inputs, experiment), options)
				require.NoError(b, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*len(experiments)), "ms/experiment")
	}
	b.Run("one", func(b *testing.B) { load(b, []string{"examples/megatron/exp_pretrain.yaml"}) })
	b.Run("all", func(b *testing.B) { load(b, all) })
}
