package config_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

func TestValuesRememberWhatTheyReplaced(t *testing.T) {
	t.Parallel()
	dir := write(t, files{
		"base.yaml": "modules:\n  pre_trainer:\n    overrides: {lr: 2.0, nested: 5, same: 1}\n",
		"exp.yaml":  "extends: base.yaml\n" + experimentHead + trainer + "    overrides: {lr: 3.0, nested: {a: 1}, same: 1}\n",
	})
	exp, err := config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), config.Options{
		Formats: formats.All(),
		Presets: []config.Root{memoryRoot(files{
			"modules/fw/base.yaml": "lr: 0.5\n", "modules/fw/t.yaml": "extends: base.yaml\nlr: 1.0\nnested: {a: 0, b: 2}\nshared: 1\n",
			"models/fw/m.yaml": "shared: 2\n",
		})},
		Overrides: []string{"lr=4.0", "lr=5.0", "nested.a=9"},
	})
	require.NoError(t, err)
	params := exp.Modules[0].Params
	for path, want := range map[string][]any{
		"lr":       {4.0, 3.0, 2.0, 1.0, 0.5},
		"nested":   {int64(5)},
		"nested.a": {int64(1), int64(0)},
		"nested.b": nil,
		"same":     {int64(1)},
		"shared":   {int64(2)},
	} {
		var got []any
		for _, old := range value(t, params, path).Replaced() {
			assert.False(t, old.Origin().IsZero(), path)
			got = append(got, old.Any())
		}
		assert.Equal(t, want, got, path)
	}
	assert.Equal(t, `override 1 "lr=4.0"`, value(t, params, "lr").Replaced()[0].Origin().String())
}

func TestStrictRefusesValuesWithoutEffect(t *testing.T) {
	t.Parallel()
	text := "lora: {rank: 8}\n" + experimentHead + trainer
	_, err := load(t, text, basicPresets, config.Options{Formats: formats.All(), Strict: true})
	require.ErrorIs(t, err, config.ErrNoEffect)
	require.ErrorContains(t, err, "exp.yaml:1:7: lora: a mapping of 1 has no effect")
	require.ErrorContains(t, err, `embedded/models/fw/m.yaml:2:9: modules.pre_trainer.shared: string "model" of the model preset`)

	exp, err := load(t, experimentHead+trainer, files{"modules/fw/t.yaml": "a: 1\nb: 2\n", "models/fw/m.yaml": "a: 1\n"},
		config.Options{Formats: formats.All(), Strict: true, Overrides: []string{"new_key=1"}})
	require.NoError(t, err, "equal values do not collide, and new keys are legal")
	assert.True(t, exp.Strict)
	require.NoError(t, exp.Report.Err())
}
