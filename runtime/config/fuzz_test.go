package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n", "a: &x [1, *x]\n", "<<: {a: 1}\nb: 2025-01-01\n", "a: !!binary aGk=\n", "? [k]\n: v\n", "a: ${V:1}\n---\n", "- x\n- {y: 1:30}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loadAndRender(t, "x.yaml", text)
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 1.0, "x"], "a": {"b": null}}`, `{"a": 1e5, "b": -0}`, `{"\u00e9": "\ud800"} x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loadAndRender(t, "x.json", text)
	})
}

func FuzzTOML(f *testing.F) {
	for _, seed := range []string{
		"a.b = 1\n[c]\nd = [1, {x = 'y'}]\n[[e]]\n[[e]]\nf = inf\n", "a = 1979-05-27 07:32:00\nb = 07:32:00\n", "'q' = 0x1_0\n\"w\\n\" = true\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loadAndRender(t, "x.toml", text)
	})
}

// loadAndRender decodes a file; what it accepts must survive being rendered.
func loadAndRender(t *testing.T, file, text string) {
	t.Helper()
	root, _, err := decodeFile(file, []byte(text))
	if err != nil {
		require.NotContains(t, err.Error(), "panicked")
		return
	}
	m, ok := root.Map()
	if !ok {
		return
	}
	for _, origins := range []bool{false, true} {
		rendered, err := Render(m, FormatYAML, origins)
		require.NoError(t, err)
		require.True(t, m.Equal(reread(t, "y.yaml", rendered)), "%q became %q", text, rendered)
		if rendered, err = Render(m, FormatTOML, origins); err == nil {
			require.True(t, nullStrings(m).Equal(nullStrings(reread(t, "y.toml", rendered))), "%q became %q", text, rendered)
		}
		rendered, err = Render(m, FormatJSON, origins)
		require.NoError(t, err)
		require.True(t, json.Valid(rendered))
	}
}

func reread(t *testing.T, file string, text []byte) *Map {
	t.Helper()
	root, _, err := decodeFile(file, text)
	require.NoError(t, err, "%q", text)
	root, _, err = substitute(root, fixtureEnv(nil))
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m
}

func FuzzExperiment(f *testing.F) {
	f.Add("work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nplatform: {config: p}\nmodules: {trainer: {framework: f, config: m, model: m, overrides: {a: {b: 1}}}}\n", "a.b=2")
	f.Add("extends: exp.yaml\n", "--x")
	presets := Root{Name: "presets", FS: fstest.MapFS{
		"platforms/p.yaml": {Data: []byte("{name: p, num_nodes_env_key: , node_rank_env_key: , master_addr_env_key: , master_port_env_key: , gpus_per_node_env_key: , master_sink_level: , workspace: }")},
		"modules/f/m.yaml": {Data: []byte("a: {b: 0}\nc: 'null'\n")},
		"models/f/m.yaml":  {Data: []byte("a: 1\nd: ${A:1}\n")},
	}}
	f.Fuzz(func(t *testing.T, text, token string) {
		file := filepath.Join(t.TempDir(), "exp.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		exp, err := LoadExperiment(file, Options{Presets: []Root{presets}, Env: fixtureEnv(nil), Overrides: []string{token}})
		if err != nil {
			require.NotContains(t, err.Error(), "panicked")
			return
		}
		for _, format := range Formats() {
			_, err = Render(exp.Export(), format, true)
			require.True(t, err == nil || format == FormatTOML, "%v", err)
		}
	})
}

func FuzzSubstitute(f *testing.F) {
	f.Add("${A}", "1")
	f.Add("x${A:2}${B:${C}}", "null")
	f.Add("${A}${A}", "1e5")
	f.Fuzz(func(t *testing.T, text, content string) {
		got, _, err := substitute(Value{data: text}, fixtureEnv(map[string]string{"A": content}))
		if err != nil {
			return
		}
		if !strings.Contains(text, "${") {
			require.Equal(t, text, got.data)
		}
		require.NotEqual(t, KindMap, got.Kind())
	})
}

func FuzzOverrides(f *testing.F) {
	f.Add("a=1", "a.b=2", "--c")
	f.Add("--a", "-5", "b=[1, {'k': (1,)}]")
	f.Add("a={'x': 1}", "a.y=2", "--=x")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		m, _, err := ParseOverrides([]string{first, second, third})
		if err != nil {
			require.ErrorIs(t, err, ErrUsage)
			return
		}
		base, ok := FromGo(map[string]any{"a": map[string]any{"b": 1}, "c": "x"})
		require.NoError(t, ok)
		start, _ := base.Map()
		require.GreaterOrEqual(t, Merge(start, m).Len(), m.Len())
	})
}
