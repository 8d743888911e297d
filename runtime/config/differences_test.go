package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

// TestDifferencesFromPrimus holds what docs/reference/compatibility.md lists, under the same
// numbers.
func TestDifferencesFromPrimus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		experiment string
		presets    files
		options    config.Options
		// want maps parameters to values, noticed and wantErr are texts that must appear.
		want    map[string]any
		noticed string
		wantErr string
	}{
		{name: "1 keys at the top level are reported", experiment: "lr: 2.0\n" + experimentHead + trainer,
			want: map[string]any{"lr": 1e-3}, noticed: "lr: float 2.0 of the top level has no effect, float 1.0e-3 of the parameters is kept"},
		{name: "1 and an error when that is asked for", experiment: "lora: {}\n" + experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Strict: true}, wantErr: "lora: a mapping of 0 has no effect"},
		{name: "2 what a module preset takes from a model preset is reported, null too", experiment: experimentHead + trainer,
			presets: files{"modules/fw/t.yaml": "fp8: null\n", "models/fw/m.yaml": "fp8: e4m3\n"},
			want:    map[string]any{"fp8": nil}, noticed: `fp8: string "e4m3" of the model preset has no effect, null of the module preset is kept`},
		{name: "6 overrides are never evaluated", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"a=__import__('os').getcwd()", "b=max", "c=4096*2", "d=0x10"}},
			want:    map[string]any{"a": "__import__('os').getcwd()", "b": "max", "c": "4096*2", "d": "0x10"}},
		{name: "7 exponents make floats and null is null", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"a=1e-4", "b=1E5", "c=-1e-5", "d=null", "e=None"}},
			want:    map[string]any{"a": 1e-4, "b": 1e5, "c": -1e-5, "d": nil, "e": nil}},
		{name: "8 a flag that takes the next override is reported", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"--flag", "a=1"}}, want: map[string]any{"flag": "a=1"}, noticed: `write --flag=true if it is a flag`},
		{name: "8 a separator is an error", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"--", "a=1"}}, wantErr: "token names no key"},
		{name: "8 a bare word is an error", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"word"}}, wantErr: "token has no value, want key=value or --key value"},
		{name: "9 hyphens are hinted at", experiment: experimentHead + trainer,
			options: config.Options{Formats: formats.All(), Overrides: []string{"--num-layers", "2"}}, want: map[string]any{"num_layers": int64(4), "num-layers": int64(2)}, noticed: "did you mean \"num_layers\"?"},
		{name: "11 the string null is null at any depth", experiment: experimentHead + trainer + "    overrides: {new: {deep: 'null', list: ['null']}}\n",
			presets: files{"modules/fw/t.yaml": "m: {x: 'null'}\n", "models/fw/m.yaml": "n: {x: {y: 'null'}}\n"},
			want:    map[string]any{"m.x": nil, "n.x.y": nil, "new.deep": nil, "new.list": []any{"null"}}},
		{name: "12 a default keeps its quotes, and that is reported", experiment: experimentHead + trainer + "    overrides: {token: '${NO:\"\"}'}\n",
			want: map[string]any{"token": `""`}, noticed: `the default "" of ${NO} keeps its quotes`},
		{name: "25 a cycle is named", experiment: "extends: exp.yaml\n", wantErr: "files extend each other"},
		{name: "26 extends stays in the configuration roots", experiment: "extends: ../../etc/exp.yaml\n", wantErr: "leaves the configuration roots"},
		{name: "40 a missing key is named with its place", experiment: experimentHead + "modules:\n  pre_trainer: {framework: fw, config: t.yaml}\n",
			wantErr: "exp.yaml:7:40: modules.pre_trainer.model: required key is missing"},
		{name: "40 an empty name is reported", experiment: strings.Replace(experimentHead, "exp_name: e", "exp_name: ''", 1) + trainer, noticed: "exp_name: value is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			presets := tt.presets
			if presets == nil {
				presets = basicPresets
			}
			exp, err := load(t, tt.experiment, presets, tt.options)
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			for path, want := range tt.want {
				assert.Equal(t, want, value(t, exp.Modules[0].Params, path).Any(), path)
			}
			assert.Contains(t, strings.Join(noticed(exp), "\n"), tt.noticed)
		})
	}
}

func TestNamesMayLookLikeNumbers(t *testing.T) { // 10
	t.Parallel()
	text := strings.Replace(experimentHead, "user_name: u", "user_name: ${USER_NAME}", 1) + trainer
	for _, name := range []string{"42", "007", "1e3", "true", "1.50"} {
		exp, err := load(t, text, basicPresets, config.Options{Formats: formats.All(), Env: environment(map[string]string{"USER_NAME": name})})
		require.NoError(t, err)
		assert.Equal(t, "./o/wg/"+name+"/e", exp.RootPath())
	}
}

func TestExportKeepsModuleNamesAndPlatform(t *testing.T) { // 3, 5
	t.Parallel()
	text := strings.Replace(experimentHead, "{config: local.yaml}", "{config: local.yaml, overrides: {workspace: ./mine, extra: 1}}", 1) + trainer
	exp, err := load(t, text, basicPresets, config.Options{Formats: formats.All()})
	require.NoError(t, err)
	exported, err := formats.YAML{}.Render(exp.Export(), false)
	require.NoError(t, err)
	again, err := load(t, string(exported), nil, config.Options{Formats: formats.All(), Strict: true})
	require.NoError(t, err)
	_, err = again.Module("pre_trainer")
	require.NoError(t, err)
	assert.Equal(t, "./mine", value(t, again.Platform, "workspace").Any())
	assert.Equal(t, int64(1), value(t, again.Platform, "extra").Any())
}

func TestEnvBlockIsPartOfTheExperiment(t *testing.T) { // 24
	t.Parallel()
	dir := write(t, files{
		"base.yaml": "env: {A: base, B: '${NO_B:two}', D: 1.0e-5}\n",
		"exp.yaml":  "extends: base.yaml\n" + experimentHead + trainer + "env: {A: own, C: true}\n",
	})
	exp, err := config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), config.Options{
		Formats: formats.All(),
		Presets: []config.Root{memoryRoot(basicPresets)}, Env: environment(nil),
	})
	require.NoError(t, err)
	got := map[string]string{}
	for name, v := range exp.Env.All() {
		got[name] = v.Text()
	}
	assert.Equal(t, map[string]string{"A": "own", "B": "two", "C": "true", "D": "1.0e-5"}, got)
	_, err = load(t, experimentHead+trainer+"env: {A: [1]}\n", basicPresets, config.Options{Formats: formats.All()})
	require.ErrorContains(t, err, "env.A: given a list of 1, want the text of a variable")
}

func TestLoadingWritesNothing(t *testing.T) { // 39
	t.Parallel()
	dir := write(t, files{"exp.yaml": strings.Replace(experimentHead, "./o", "WS", 1) + trainer})
	text, err := os.ReadFile(filepath.Join(dir, "exp.yaml"))
	require.NoError(t, err)
	workspace := filepath.Join(dir, "ws")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "exp.yaml"), []byte(strings.Replace(string(text), "WS", workspace, 1)), 0o600))
	_, err = config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), config.Options{Formats: formats.All(), Presets: []config.Root{memoryRoot(basicPresets)}})
	require.NoError(t, err)
	_, err = os.Stat(workspace)
	require.ErrorIs(t, err, fs.ErrNotExist)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
