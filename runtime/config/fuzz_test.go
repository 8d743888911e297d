package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/config/document/formats"
)

func FuzzExperiment(f *testing.F) {
	f.Add("work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nplatform: {config: p}\nmodules: {trainer: {framework: f, config: m, model: m, overrides: {a: {b: 1}}}}\n", "a.b=2")
	f.Add("extends: exp.yaml\n", "--x")
	presets := config.Root{Name: "presets", FS: fstest.MapFS{
		"platforms/p.yaml": {Data: []byte("{name: p, num_nodes_env_key: , node_rank_env_key: , master_addr_env_key: , master_port_env_key: , gpus_per_node_env_key: , master_sink_level: , workspace: }")},
		"modules/f/m.yaml": {Data: []byte("a: {b: 0}\nc: 'null'\n")},
		"models/f/m.yaml":  {Data: []byte("a: 1\nd: ${A:1}\n")},
	}}
	f.Fuzz(func(t *testing.T, text, token string) {
		file := filepath.Join(t.TempDir(), "exp.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		exp, err := config.LoadExperiment(file, config.Options{Formats: formats.All(), Presets: []config.Root{presets}, Env: environment(nil), Overrides: []string{token}})
		if err != nil {
			require.NotContains(t, err.Error(), "panicked")
			return
		}
		for _, format := range formats.All().Renderers() {
			_, err = format.Render(exp.Export(), true)
			require.True(t, err == nil || format.Name() == "toml", "%v", err)
		}
	})
}
