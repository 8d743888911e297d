package document_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/recordtest"
)

// awkward holds values that renderers get wrong easily.
func awkward(t *testing.T) *document.Map {
	t.Helper()
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	v, err := document.FromGo(map[string]any{
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

// reload reads a rendered map the way parameters are read.
func reload(t *testing.T, name string, rendered []byte) *document.Map {
	t.Helper()
	root, _, err := formats.All().Parse(t.Context(), name, rendered)
	require.NoError(t, err)
	root, _, err = document.Substitute(root, recordtest.Environment(map[string]string{"A": "a"}))
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m.NullStrings()
}

func TestRenderedMapsLoadBack(t *testing.T) {
	t.Parallel()
	want := awkward(t)
	asYAML, err := formats.YAML{}.Render(want, false)
	require.NoError(t, err)
	got := reload(t, "m.yaml", asYAML)
	assert.True(t, want.Equal(got), "%s\nbecame\n%v", asYAML, got.Any())
	assert.Equal(t, want.Keys(), got.Keys())

	plain, err := document.FromGo(map[string]any{"i": 1, "f": 1.0, "e": 1e-7, "s": []any{"null", "é<>&", "\u2028", ""}, "m": map[string]any{}, "n": nil})
	require.NoError(t, err)
	m, _ := plain.Map()
	asJSON, err := json.Marshal(m)
	require.NoError(t, err)
	assert.True(t, m.Equal(reload(t, "m.json", asJSON)), string(asJSON))
}

func TestRenderText(t *testing.T) {
	t.Parallel()
	m := params(t, "b=1e-5", "a=[1, 'x', None]", "c.d=yes", "e=1e999", "f=16.0", "g={}")
	asYAML, err := formats.YAML{}.Render(m, false)
	require.NoError(t, err)
	assert.Equal(t, "b: 1.0e-05\na:\n  - 1\n  - x\n  - null\nc:\n  d: \"yes\"\ne: .inf\nf: 16.0\ng: {}\n", string(asYAML))
	asJSON, err := json.Marshal(m)
	require.NoError(t, err)
	assert.Equal(t, `{"b":1.0e-05,"a":[1,"x",null],"c":{"d":"yes"},"e":".inf","f":16.0,"g":{}}`, string(asJSON))
}

func TestFromGoRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	for _, data := range []any{make(chan int), map[int]string{1: "x"}, []any{func() {}}, map[string]any{"a": struct{}{}}, "\xff", map[string]int{"\xff": 1}} {
		_, err := document.FromGo(data)
		require.Error(t, err)
	}
}

func TestRenderTOML(t *testing.T) {
	t.Parallel()
	m := params(t, "b=1e-5", "t.x.y=1", "a=[1, 'x', [2.0], {'k': True}]", "n=None", "t.s=q\"\\", "e=1e999", "g={}", "odd key=-0")
	text, err := formats.TOML{}.Render(m, false)
	require.NoError(t, err)
	assert.Equal(t, "b = 1.0e-05\na = [1, \"x\", [2.0], {k = true}]\nn = \"null\"\ne = inf\n\"odd key\" = 0\n\n[t]\ns = \"q\\\"\\\\\"\n\n[t.x]\ny = 1\n\n[g]\n",
		string(text))
	for token, want := range map[string]string{
		"a={'b': [1, None]}":       `override 1 "a={'b': [1, None]}": a.b[1]: TOML has no null in lists; write YAML or JSON`,
		"a=1234567890123456789012": "a: TOML has no int of more than 64 bits",
		"a=[b'x']":                 "a[0]: TOML has no bytes",
	} {
		_, err := formats.TOML{}.Render(params(t, token), false)
		require.ErrorContains(t, err, want)
	}
	text, err = formats.TOML{Foreign: true}.Render(params(t, "a=${A}"), false)
	require.NoError(t, err)
	assert.Equal(t, "a = \"${A}\"\n", string(text))
	_, err = formats.TOML{Foreign: true}.Render(params(t, "a=None"), false)
	require.ErrorContains(t, err, "a: TOML has no null")
}

func TestRenderOrigins(t *testing.T) {
	t.Parallel()
	m := document.Merge(params(t, "lr=1", "l=[1]", "m.a=x", "gone=\n\"y"), params(t, "--lr", "2", "l=[3]", "m=None", "gone=[]"))
	yamlText, err := formats.YAML{}.Render(m, true)
	require.NoError(t, err)
	assert.Equal(t, `lr: 2 # override 1 "--lr 2"; over 1 (override 1 "lr=1")
# override 3 "l=[3]"; over [1] (override 2 "l=[1]")
l:
  - 3
m: null # override 4 "m=None"; over {"a":"x"} (override 3 "m.a=x")
gone: [] # override 5 "gone=[]"; over "\"y" (override 4 "gone=\n\"y")
`, string(yamlText))
	tomlText, err := formats.TOML{}.Render(m, true)
	require.NoError(t, err)
	assert.Contains(t, string(tomlText), "lr = 2 # override 1 \"--lr 2\"; over 1 (override 1 \"lr=1\")\n")
	jsonText, err := formats.JSON{}.Render(params(t, "a.b=1"), true)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a": {"b": 1}, "origins": {"a.b": {"origin": "override 1 \"a.b=1\""}}}`, string(jsonText))
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]document.Renderer{"a.yaml": formats.YAML{}, "a.b/c.yml": formats.YAML{}, "x.json": formats.JSON{}, "x.toml": formats.TOML{}} {
		got, err := formats.All().RendererOf(file)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := formats.All().RendererOf("x.ini")
	require.ErrorContains(t, err, `file "x.ini" ends with ".ini", want one of .yaml .yml .json .toml`)
	_, err = formats.All().Renderer("xml")
	require.ErrorContains(t, err, `given format "xml", want one of yaml json toml`)
	format, err := formats.All().Renderer("JSON")
	require.NoError(t, err)
	assert.Equal(t, formats.JSON{}, format)
}
