package config

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
)

// deviations lists where we differ from the recorded ancestor on purpose: fixture file, case (its name, document or
// tokens), what we do instead, and why. want is a fragment of our error, or empty where we give another value.
var deviations = []struct{ file, id, want, why string }{
	{"yaml_docs.jsonl", "1: x\ntrue: y\nnull: z\n1.5: w\n", "expected a string as key",
		"no configuration can use other keys, the ancestor fails one step later"},
	{"overrides_modern.jsonl", "bare ok=1", `override 1 "bare"`, "a dropped token is a lost setting: usage error instead of a warning"},
	{"overrides_modern.jsonl", "a=1E5", "", "a number with an exponent is a float with and without a point"},
	{"merge_cases.jsonl", "null_string_nested_no_overrides", "",
		`the string "null" is null at any depth outside lists, not depending on which merges happened`},
	{"bad_inputs.jsonl", "cli_null_string_kept", "", "null on the command line is null, as in files"},
}

func deviation(file, id string) (want string, found bool) {
	for _, d := range deviations {
		if d.file == file && d.id == id {
			return d.want, true
		}
	}
	return "", false
}

// checkDeviation asserts what a deviating case does and reports whether the case is one.
func checkDeviation(t *testing.T, file, id string, err error) bool {
	t.Helper()
	want, found := deviation(file, id)
	if found && want != "" {
		require.ErrorContains(t, err, want)
	} else if found {
		require.NoError(t, err)
	}
	return found
}

func loadText(text string, env map[string]string) (Value, error) {
	root, _, err := decodeFile("x.yaml", []byte(text))
	if err != nil {
		return Value{}, err
	}
	root, _, err = substitute(root, fixtureEnv(env))
	return root, err
}

func TestRecordedYAMLScalars(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t, "yaml_scalars.jsonl") {
		t.Run(c.Doc, func(t *testing.T) {
			t.Parallel()
			root, err := loadText(c.Doc, nil)
			require.NoError(t, err)
			m, ok := root.Map()
			require.True(t, ok)
			got, _ := m.Get("a")
			assert.NoError(t, mismatch(c.Result, got, "a"))
		})
	}
}

func TestRecordedYAMLDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t, "yaml_docs.jsonl") {
		t.Run(c.Doc, func(t *testing.T) {
			t.Parallel()
			root, err := loadText(c.Doc, c.Env)
			if checkDeviation(t, "yaml_docs.jsonl", c.Doc, err) {
				return
			}
			if c.Error != "" {
				require.ErrorContains(t, err, "x.yaml:")
				return
			}
			require.NoError(t, err)
			assert.NoError(t, mismatch(c.Result, root, ""))
		})
	}
}

func TestRecordedSubstitutions(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t, "env_scalars.jsonl") {
		t.Run(c.Text, func(t *testing.T) {
			t.Parallel()
			got, _, err := substitute(Value{data: c.Text}, fixtureEnv(c.Env))
			if c.Error != "" {
				require.ErrorIs(t, err, ErrUnsetVariable)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, mismatch(c.Result, got, ""))
		})
	}
}

func TestRecordedOverrides(t *testing.T) {
	t.Parallel()
	const name = "overrides_modern.jsonl"
	for _, c := range readCases(t, name) {
		id := strings.Join(c.Tokens, " ")
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			got, _, err := ParseOverrides(c.Tokens)
			if checkDeviation(t, name, id, err) {
				return
			}
			if c.Error != "" {
				require.ErrorIs(t, err, ErrUsage)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, mismatch(c.Result, Value{data: got}, ""))
		})
	}
}

// loadCase writes the files of a case into a directory and loads its experiment.
func loadCase(t *testing.T, inputs string, c fixtureCase) (*Experiment, error) {
	t.Helper()
	presets, err := DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(t, err)
	options := Options{Root: inputs, Presets: []Root{presets}, Env: fixtureEnv(c.Env), Overrides: c.Overrides}
	if c.Path != "" {
		return LoadExperiment(filepath.Join(inputs, c.Path), options)
	}
	dir := t.TempDir()
	for name, text := range c.Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	own, err := DirRoot(filepath.Join(dir, "configs"))
	require.NoError(t, err)
	options.Root, options.Presets = dir, []Root{own, presets}
	file := "exp.yaml"
	if c.Name == "missing_file" {
		file = "nope.yaml"
	}
	return LoadExperiment(filepath.Join(dir, file), options)
}

// compareRecorded checks an experiment against a recording.
func compareRecorded(t *testing.T, recorded any, exp *Experiment) {
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
		assert.NoError(t, mismatch(block, Value{data: exp.Env}, "env"))
	}
	rest := maps.Clone(want)
	delete(rest, "top_level_keys")
	delete(rest, "env_block")
	assert.NoError(t, mismatch(rest, Value{data: exp.View().without("env")}, ""))
}

func TestRecordedMerges(t *testing.T) {
	t.Parallel()
	inputs := unpackInputs(t)
	for _, file := range []string{"merge_cases.jsonl", "bad_inputs.jsonl", "env_cases.jsonl"} {
		for _, c := range readCases(t, file) {
			t.Run(file+"/"+c.Name+c.Path, func(t *testing.T) {
				t.Parallel()
				exp, err := loadCase(t, inputs, c)
				if checkDeviation(t, file, c.Name, err) {
					return
				}
				if c.Error != "" {
					require.Error(t, err)
					assert.Regexp(t, `\w\.ya?ml(:\d+)*: .|^override \d+ `, err.Error(), "names the file")
					assert.Regexp(t, `:\d+: |: [\w.]+: |^override \d+ |"[^"]*nope\.yaml" does not exist|file is empty`, err.Error(), "names the place")
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
	t.Parallel()
	inputs := unpackInputs(t)
	golden := os.DirFS(filepath.Join(fixtureDir(t), "golden"))
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
			decodeNumbers(t, data, &want)
			exp, err := loadCase(t, inputs, fixtureCase{Path: experiment})
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
func assertReloads(t *testing.T, inputs string, exp *Experiment) {
	t.Helper()
	presets, err := DirRoot(filepath.Join(inputs, "primus", "configs"))
	require.NoError(t, err)
	for _, format := range Formats() {
		dump, err := Render(exp.Export(), format, format == FormatTOML)
		require.NoError(t, err)
		name := "exp." + string(format)
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, dump, 0o600))
		again, err := LoadExperiment(file, Options{Presets: []Root{presets}, Env: fixtureEnv(nil)})
		require.NoError(t, err)
		assert.True(t, exp.View().Equal(again.View()), name)
		assert.True(t, exp.Env.Equal(again.Env))
		if name == "exp.yaml" {
			twice, err := Render(again.Export(), format, false)
			require.NoError(t, err)
			assert.Equal(t, string(dump), string(twice), "order is stable")
		}
	}
}
