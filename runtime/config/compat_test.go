package config_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/recordtest"
	"github.com/primus-fl/primus/runtime/config"
)

// loadCase writes the files of a case into a directory and loads its experiment.
func loadCase(t *testing.T, inputs string, c recordtest.Case) (*config.Experiment, error) {
	t.Helper()
	presets, err := config.DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(t, err)
	options := config.Options{Formats: formats.All(), Root: inputs, Presets: []config.Root{presets}, Env: recordtest.Environment(c.Env), Overrides: c.Overrides}
	if c.Path != "" {
		return config.LoadExperiment(t.Context(), filepath.Join(inputs, c.Path), options)
	}
	dir := t.TempDir()
	for name, text := range c.Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	own, err := config.DirRoot(filepath.Join(dir, "configs"))
	require.NoError(t, err)
	options.Root, options.Presets = dir, []config.Root{own, presets}
	file := "exp.yaml"
	if c.Name == "missing_file" {
		file = "nope.yaml"
	}
	return config.LoadExperiment(t.Context(), filepath.Join(dir, file), options)
}

// compareRecorded checks an experiment against a recording.
func compareRecorded(t *testing.T, recorded any, exp *config.Experiment) {
	t.Helper()
	want, ok := recorded.(map[string]any)
	require.True(t, ok)
	var keys []any
	for _, key := range exp.Document.Keys() {
		keys = append(keys, key)
	}
	keys = append(keys, "name", "config_file")
	if !slices.Contains(keys, any("platform")) {
		keys = append(keys, "platform")
	}
	assert.Equal(t, want["top_level_keys"], keys)
	if block, ok := want["env_block"].(map[string]any); ok {
		assert.NoError(t, recordtest.Mismatch(block, document.MapValue(exp.Env), "env"))
	}
	rest := maps.Clone(want)
	delete(rest, "top_level_keys")
	delete(rest, "env_block")
	assert.NoError(t, recordtest.Mismatch(rest, document.MapValue(exp.View().Without("env")), ""))
}

func TestRecordedMerges(t *testing.T) {
	t.Parallel()
	inputs := recordtest.Inputs(t)
	for _, file := range []string{"merge_cases.jsonl", "bad_inputs.jsonl", "env_cases.jsonl"} {
		for _, c := range recordtest.Cases(t, file) {
			t.Run(file+"/"+c.Name+c.Path, func(t *testing.T) {
				t.Parallel()
				exp, err := loadCase(t, inputs, c)
				if recordtest.Deviates(t, file, c.Name, err) {
					return
				}
				if c.Error != "" {
					require.Error(t, err)
					assert.Regexp(t, `\w\.ya?ml(:\d+)*: .|^override \d+ `, err.Error(), "names the file")
					assert.Regexp(t, `:\d+: |: [\w.]+: |^override \d+ |nope\.yaml: file does not exist|file is empty`, err.Error(), "names the place")
					return
				}
				require.NoError(t, err)
				compareRecorded(t, c.Result, exp)
			})
		}
	}
}

// incomplete names experiments that extend a file which the archive of inputs does not hold.
var incomplete = map[string]bool{
	"examples/megatron/configs/MI355X/llama3_8B-BF16-lora-sft.yaml":                 true,
	"examples/megatron/configs/MI355X/diffusion/flux_535m_with_guidance_embed.yaml": true,
}

func TestRecordedExperiments(t *testing.T) {
	primustest.Sequential(t, "it compares hundreds of experiments")
	t.Parallel()
	inputs := recordtest.Inputs(t)
	golden := os.DirFS(filepath.Join(recordtest.Dir(t), "golden"))
	files, err := fs.Glob(golden, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	const everySeventh = 7
	for i, name := range files {
		experiment := strings.ReplaceAll(strings.TrimSuffix(name, ".json"), "__", "/")
		t.Run(experiment, func(t *testing.T) {
			t.Parallel()
			data, err := fs.ReadFile(golden, name)
			require.NoError(t, err)
			var want any
			recordtest.Decode(t, data, &want)
			exp, err := loadCase(t, inputs, recordtest.Case{Path: experiment})
			if errors.Is(err, fs.ErrNotExist) && incomplete[experiment] {
				t.Skip("the recording lacks a file that this experiment extends")
			}
			require.NoError(t, err)
			compareRecorded(t, want, exp)
			if i%everySeventh == 0 {
				assertReloads(t, inputs, exp)
			}
		})
	}
}

// assertReloads checks that the dumps of an experiment load back to the same experiment.
func assertReloads(t *testing.T, inputs string, exp *config.Experiment) {
	t.Helper()
	presets, err := config.DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(t, err)
	for _, format := range formats.All().Renderers() {
		dump, err := format.Render(exp.Export(), format.Name() == "toml")
		require.NoError(t, err)
		name := "exp." + format.Name()
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, dump, 0o600))
		again, err := config.LoadExperiment(t.Context(), file, config.Options{Formats: formats.All(), Presets: []config.Root{presets}, Env: recordtest.Environment(nil)})
		require.NoError(t, err)
		assert.True(t, exp.View().Equal(again.View()), name)
		assert.True(t, exp.Env.Equal(again.Env))
		if name == "exp.yaml" {
			twice, err := format.Render(again.Export(), false)
			require.NoError(t, err)
			assert.Equal(t, string(dump), string(twice), "order is stable")
		}
	}
}
