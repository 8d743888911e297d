package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

func TestRenderedExperimentsLoadBack(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+"env: {A: '1', B: \"${X:\\\"\\\"}\"}\n"+trainer+"    trainer_class: T\n    overrides: {a: ['null'], framework: other}\n",
		basicPresets, config.Options{Overrides: []string{"name=n", "params={'q': 1}", "_p=1", "model=x"}})
	require.NoError(t, err)
	for _, format := range formats.All().Renderers() {
		text, err := exp.ExportAs(format)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "exp."+format.Name())
		require.NoError(t, os.WriteFile(file, text, 0o600))
		again, err := config.LoadExperiment(t.Context(), file, config.Options{Formats: formats.All(), Presets: []config.Root{memoryRoot(nil)}, Env: environment(nil), Strict: true})
		require.NoError(t, err, string(text))
		assert.True(t, exp.Modules[0].Params.Equal(again.Modules[0].Params), string(text))
		assert.True(t, exp.Platform.Equal(again.Platform))
		assert.True(t, exp.Env.Equal(again.Env))
		assert.Equal(t, "other", again.Modules[0].Framework)
		assert.Equal(t, "T", again.Modules[0].TrainerClass)
	}
}

func TestExportsThatWouldChangeAreErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format           document.Renderer
		overrides, wants string
	}{
		{formats.JSON{}, "a={'b': [1, 1e999]}", `modules.pre_trainer.params.a.b[1]: json cannot hold float .inf; export another format, such as yaml`},
		{formats.JSON{}, "a=b", "env.DAY: json cannot hold date 2025-01-01"},
		{formats.TOML{}, "a=b", "env.NONE: toml cannot hold null; export another format"},
		{formats.TOML{}, "a=[None]", "modules.pre_trainer.params.a[0]: TOML has no null in lists"},
	}
	for _, tt := range tests {
		env := "env: {DAY: 2025-01-01, NONE: null}\n"
		if tt.overrides != "a=b" {
			env = ""
		}
		exp, err := load(t, experimentHead+env+trainer, basicPresets, config.Options{Overrides: []string{tt.overrides}})
		require.NoError(t, err)
		_, err = exp.ExportAs(tt.format)
		require.ErrorContains(t, err, tt.wants)
		_, err = exp.ExportAs(formats.YAML{})
		require.NoError(t, err)
	}
}
