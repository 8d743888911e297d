package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzExperiment loads an experiment over a preset that is fuzzed, too. What can be exported in a
// format loads back to the same parameters.
//
// Oracle: round trip.
func FuzzExperiment(f *testing.F) {
	const experiment = "work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nplatform: {config: p}\nmodules: {trainer: {framework: f, config: m, model: m, overrides: {a: {b: 1}}}}\n"
	f.Add(experiment, "a: {b: 0}\nc: 'null'\n", "a.b=2")
	f.Add(experiment, "extends: [m.yaml, ../f/m.yaml]\n", "a={'b': [None, 1e999]}")
	f.Add(experiment+"env: {A: $HOME, B: ${A:x}, C: null}\n", "x: ${A}\n? y\n: 2025-01-01\n", "exp_name=${A:1}")
	f.Add("extends: exp.yaml\n", "", "--x")
	f.Fuzz(func(t *testing.T, text, preset, token string) {
		defer primustest.Measured(t, len(text)+len(preset)+len(token))()
		presets := config.Root{Name: "presets", FS: fstest.MapFS{
			"platforms/p.yaml": {Data: []byte("{name: p, num_nodes_env_key: , node_rank_env_key: , master_addr_env_key: , master_port_env_key: , gpus_per_node_env_key: , master_sink_level: , workspace: }")},
			"modules/f/m.yaml": {Data: []byte(preset)},
			"models/f/m.yaml":  {Data: []byte("a: 1\nd: ${A:1}\n")},
		}}
		options := config.Options{Formats: formats.All(), Presets: []config.Root{presets}, Env: environment(nil), Overrides: []string{token}}
		dir := t.TempDir()
		file := filepath.Join(dir, "exp.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		exp, err := config.LoadExperiment(t.Context(), file, options)
		if err != nil {
			require.NotContains(t, err.Error(), "panicked")
			return
		}
		options.Overrides = nil
		for _, format := range formats.All().Renderers() {
			exported, err := exp.ExportAs(format)
			if err != nil {
				require.NotContains(t, err.Error(), "does not load")
				require.NotEqual(t, "yaml", format.Name(), "%v", err)
				continue
			}
			file := filepath.Join(dir, "again."+format.Name())
			require.NoError(t, os.WriteFile(file, exported, 0o600))
			again, err := config.LoadExperiment(t.Context(), file, options)
			require.NoError(t, err, "%s", exported)
			require.True(t, exp.Modules[0].Params.Equal(again.Modules[0].Params), "%s", exported)
			require.True(t, exp.Platform.Equal(again.Platform) && exp.Env.Equal(again.Env), "%s", exported)
		}
	})
}
