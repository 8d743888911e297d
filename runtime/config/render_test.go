package config_test

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config"
)

// awkward holds values that renderers get wrong easily.
func awkward(t *testing.T) *config.Map {
	t.Helper()
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	v, err := config.FromGo(map[string]any{
		"int": 1, "float": 1.0, "small": 1e-5, "large": 1e21, "negative zero": math.Copysign(0, -1), "huge": huge, "min": math.MinInt64,
		"strings": []any{"1e5", "yes", "null", "~", "", " padded ", "a: b", "# no comment", "two\nlines\n", "\ttab", "=", "<<", "0o17",
			"2025-01-01", "1:30", "-", "[x", "é\u2028", "\u0085", "\x01", "${HOME}", "${A:${B}}", "${", "'", `"`, "@x", "%y", "!z", "&a", "*a", "?", "null ", "7"},
		"null": nil, "true": true, "map": map[string]any{"": 1, "a.b": []any{}, "e": map[string]any{}}, "bytes": []byte{0, 255}, "yes": "no",
	})
	require.NoError(t, err)
	m, ok := v.Map()
	require.True(t, ok)
	return m
}

// reload loads a rendered map as the parameters of a module.
func reload(t *testing.T, name string, rendered []byte) *config.Map {
	t.Helper()
	dir := write(t, files{name: string(rendered), "exp.yaml": "extends: " + name + "\n" + experimentHead})
	exp, err := config.LoadExperiment(filepath.Join(dir, "exp.yaml"), config.Options{
		Presets: []config.Root{memoryRoot(nil)}, Env: environment(map[string]string{"HOME": "/root", "A": "a"}),
	})
	require.NoError(t, err)
	return exp.Modules[0].Params
}

func TestRenderedMapsLoadBack(t *testing.T) {
	t.Parallel()
	want := awkward(t)
	block := func(m *config.Map) map[string]any {
		return map[string]any{"modules": map[string]any{"a_trainer": map[string]any{"framework": "fw", "params": m}}}
	}
	asYAML, err := yaml.Marshal(block(want))
	require.NoError(t, err)
	got := reload(t, "m.yaml", asYAML)
	assert.True(t, want.Equal(got), "%s\nbecame\n%v", asYAML, got.Any())
	assert.Equal(t, want.Keys(), got.Keys())

	plain, err := config.FromGo(map[string]any{"i": 1, "f": 1.0, "e": 1e-7, "s": []any{"null", "é<>&", "\u2028", ""}, "m": map[string]any{}, "n": nil})
	require.NoError(t, err)
	m, _ := plain.Map()
	asJSON, err := json.Marshal(block(m))
	require.NoError(t, err)
	assert.True(t, m.Equal(reload(t, "m.json", asJSON)), string(asJSON))
}

func TestRenderText(t *testing.T) {
	t.Parallel()
	m := params(t, "b=1e-5", "a=[1, 'x', None]", "c.d=yes", "e=1e999", "f=16.0", "g={}")
	asYAML, err := yaml.Marshal(m)
	require.NoError(t, err)
	assert.Equal(t, "b: 1.0e-05\na:\n    - 1\n    - x\n    - null\nc:\n    d: \"yes\"\ne: .inf\nf: 16.0\ng: {}\n", string(asYAML))
	asJSON, err := json.Marshal(m)
	require.NoError(t, err)
	assert.Equal(t, `{"b":1.0e-05,"a":[1,"x",null],"c":{"d":"yes"},"e":".inf","f":16.0,"g":{}}`, string(asJSON))
}

func TestRenderedExperimentsLoadBack(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+"env: {A: '1', B: \"${X:\\\"\\\"}\"}\n"+trainer+"    trainer_class: T\n    overrides: {a: ['null'], framework: other}\n",
		basicPresets, config.Options{Overrides: []string{"name=n", "params={'q': 1}", "_p=1", "model=x"}})
	require.NoError(t, err)
	for _, format := range config.Formats() {
		text, err := exp.ExportAs(format)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "exp."+string(format))
		require.NoError(t, os.WriteFile(file, text, 0o600))
		again, err := config.LoadExperiment(file, config.Options{Presets: []config.Root{memoryRoot(nil)}, Env: environment(nil), Strict: true})
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
		format           config.Format
		overrides, wants string
	}{
		{config.FormatJSON, "a={'b': [1, 1e999]}", `modules.pre_trainer.params.a.b[1]: JSON cannot hold float .inf; write YAML`},
		{config.FormatJSON, "a=b", "env.DAY: JSON cannot hold date 2025-01-01"},
		{config.FormatTOML, "a=b", "env.NONE: TOML has no null; write YAML or JSON"},
		{config.FormatTOML, "a=[None]", "modules.pre_trainer.params.a[0]: TOML has no null in lists"},
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
		_, err = exp.ExportAs(config.FormatYAML)
		require.NoError(t, err)
	}
}

func TestFromGoRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	for _, data := range []any{make(chan int), map[int]string{1: "x"}, []any{func() {}}, map[string]any{"a": struct{}{}}, "\xff", map[string]int{"\xff": 1}} {
		_, err := config.FromGo(data)
		require.Error(t, err)
	}
}

func TestRenderTOML(t *testing.T) {
	t.Parallel()
	m := params(t, "b=1e-5", "t.x.y=1", "a=[1, 'x', [2.0], {'k': True}]", "n=None", "t.s=q\"\\", "e=1e999", "g={}", "odd key=-0")
	text, err := config.Render(m, config.FormatTOML, false)
	require.NoError(t, err)
	assert.Equal(t, "b = 1.0e-05\na = [1, \"x\", [2.0], {k = true}]\nn = \"null\"\ne = inf\n\"odd key\" = 0\n\n[t]\ns = \"q\\\"\\\\\"\n\n[t.x]\ny = 1\n\n[g]\n",
		string(text))
	for token, want := range map[string]string{
		"a={'b': [1, None]}":       `override 1 "a={'b': [1, None]}": a.b[1]: TOML has no null in lists; write YAML or JSON`,
		"a=1234567890123456789012": "a: TOML has no int of more than 64 bits",
		"a=[b'x']":                 "a[0]: TOML has no bytes",
	} {
		_, err := config.Render(params(t, token), config.FormatTOML, false)
		require.ErrorContains(t, err, want)
	}
}

func TestRenderOrigins(t *testing.T) {
	t.Parallel()
	m := config.Merge(params(t, "lr=1", "l=[1]", "m.a=x", "gone=\n\"y"), params(t, "--lr", "2", "l=[3]", "m=None", "gone=[]"))
	yamlText, err := config.Render(m, config.FormatYAML, true)
	require.NoError(t, err)
	assert.Equal(t, `lr: 2 # override 1 "--lr 2"; over 1 (override 1 "lr=1")
# override 3 "l=[3]"; over [1] (override 2 "l=[1]")
l:
  - 3
m: null # override 4 "m=None"; over {"a":"x"} (override 3 "m.a=x")
gone: [] # override 5 "gone=[]"; over "\"y" (override 4 "gone=\n\"y")
`, string(yamlText))
	tomlText, err := config.Render(m, config.FormatTOML, true)
	require.NoError(t, err)
	assert.Contains(t, string(tomlText), "lr = 2 # override 1 \"--lr 2\"; over 1 (override 1 \"lr=1\")\n")
	jsonText, err := config.Render(params(t, "a.b=1"), config.FormatJSON, true)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a": {"b": 1}, "origins": {"a.b": {"origin": "override 1 \"a.b=1\""}}}`, string(jsonText))
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]config.Format{"a.yaml": "yaml", "a.b/c.yml": "yaml", "x.json": "json", "x.toml": "toml"} {
		got, err := config.FormatOf(file)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := config.FormatOf("x.ini")
	require.ErrorContains(t, err, `file "x.ini" ends with ".ini", expected one of .yaml .yml .json .toml`)
	_, err = config.ParseFormat("xml")
	require.ErrorContains(t, err, `given format "xml", expected one of yaml json toml`)
	format, err := config.ParseFormat("JSON")
	require.NoError(t, err)
	assert.Equal(t, config.FormatJSON, format)
}
