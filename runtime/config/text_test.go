package config_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

// The text of an experiment may come from elsewhere. What it extends is beside its name.
func TestText(t *testing.T) {
	t.Parallel()
	dir := write(t, files{"base.yaml": "exp_name: of the base\nuser_name: base\n"})
	file := filepath.Join(dir, "given.yaml")
	e, err := config.LoadExperiment(t.Context(), file, config.Options{
		Formats: formats.All(), Env: environment(nil), Presets: []config.Root{memoryRoot(files{"modules/fw/t.yaml": "a: 1\n", "models/fw/m.yaml": "b: 2\n"})},
		Text: []byte("extends: [base.yaml]\nwork_group: wg\nworkspace: ./o\nexp_name: given\nplatform: {config: local.yaml}\n" + trainer),
	})
	require.NoError(t, err)
	assert.Equal(t, "./o/wg/base/given", e.RootPath())
	_, err = config.LoadExperiment(t.Context(), file, config.Options{Formats: formats.All(), Env: environment(nil), Text: []byte("a: [")})
	require.ErrorContains(t, err, "given.yaml:1")
	_, err = config.LoadExperiment(t.Context(), file, config.Options{Formats: formats.All(), Env: environment(nil)})
	require.ErrorContains(t, err, "file does not exist")
}

// Keys that say where results go have defaults for experiments of one framework, and for no others.
func TestPlaces(t *testing.T) {
	t.Parallel()
	presets := []config.Root{memoryRoot(files{
		"modules/fw/t.yaml": "a: 1\n", "models/fw/m.yaml": "b: 2\n", "modules/other/t.yaml": "a: 1\n", "models/other/m.yaml": "b: 2\n",
	})}
	load := func(text string, overrides ...string) (*config.Experiment, error) {
		return config.LoadExperiment(t.Context(), "small.yaml", config.Options{
			Formats: formats.All(), Env: environment(nil), Presets: presets, Text: []byte("platform: {config: local.yaml}\n" + text), Overrides: overrides, Module: "pre_trainer",
			Places: map[string]config.Place{"fw": {WorkGroup: "team", UserName: "me", Workspace: "./out"}},
		})
	}
	e, err := load(trainer)
	require.NoError(t, err)
	assert.Equal(t, "./out/team/me/small", e.RootPath())
	again, err := config.LoadExperiment(t.Context(), "again.yaml", config.Options{Formats: formats.All(), Env: environment(nil), Presets: presets, Text: exported(t, e)})
	require.NoError(t, err)
	assert.Equal(t, e.RootPath(), again.RootPath(), "the export has them")

	e, err = load("user_name: you\n"+trainer, "exp_name=other")
	require.NoError(t, err)
	assert.Equal(t, "./out/team/you/other", e.RootPath())

	const another = "  post_trainer: {framework: other, config: t.yaml, model: m.yaml}\n"
	for _, text := range []string{"modules:\n" + another, trainer + another, "modules: 1\n", "modules: {pre_trainer: 1}\n", "a: 1\n"} {
		_, err = load(text)
		assert.ErrorContains(t, err, "work_group: required key is missing", text)
	}
}

func exported(t *testing.T, e *config.Experiment) []byte {
	t.Helper()
	text, err := e.ExportAs(formats.YAML{})
	require.NoError(t, err)
	return text
}
