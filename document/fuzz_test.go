package document_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/recordtest"
)

// Oracle: round trip.
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

// Oracle: round trip.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 1.0, "x"], "a": {"b": null}}`, `{"a": 1e5, "b": -0}`, `{"\u00e9": "\ud800"} x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loadAndRender(t, "x.json", text)
	})
}

// Oracle: round trip.
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
	var root document.Value
	var err error
	primustest.Cost(t, len(text), 20_000, func() { root, _, err = formats.All().Parse(t.Context(), file, []byte(text)) })
	if err != nil {
		require.NotContains(t, err.Error(), "panicked")
		return
	}
	m, ok := root.Map()
	if !ok {
		return
	}
	for _, origins := range []bool{false, true} {
		rendered, err := formats.YAML{}.Render(m, origins)
		require.NoError(t, err)
		require.True(t, m.Equal(reread(t, "y.yaml", rendered)), "%q became %q", text, rendered)
		if rendered, err = (formats.TOML{}).Render(m, origins); err == nil {
			require.True(t, m.NullStrings().Equal(reread(t, "y.toml", rendered).NullStrings()), "%q became %q", text, rendered)
		}
		rendered, err = formats.JSON{}.Render(m, origins)
		require.NoError(t, err)
		require.True(t, json.Valid(rendered))
	}
}

func reread(t *testing.T, file string, text []byte) *document.Map {
	t.Helper()
	root, _, err := formats.All().Parse(t.Context(), file, text)
	require.NoError(t, err, "%q", text)
	root, _, err = document.Substitute(root, recordtest.Environment(nil))
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m
}

func FuzzSubstitute(f *testing.F) {
	f.Add("${A}", "1")
	f.Add("x${A:2}${B:${C}}", "null")
	f.Add("${A}${A}", "1e5")
	f.Fuzz(func(t *testing.T, text, content string) {
		defer primustest.Measured(t, len(text)+len(content))()
		got, _, err := document.Substitute(document.StringValue(text), recordtest.Environment(map[string]string{"A": content}))
		if err != nil {
			return
		}
		if !strings.Contains(text, "${") {
			require.Equal(t, text, got.Any())
		}
		require.NotEqual(t, document.KindMap, got.Kind())
	})
}

func FuzzOverrides(f *testing.F) {
	f.Add("a=1", "a.b=2", "--c")
	f.Add("--a", "-5", "b=[1, {'k': (1,)}]")
	f.Add("a={'x': 1}", "a.y=2", "--=x")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		defer primustest.Measured(t, len(first)+len(second)+len(third))()
		m, _, err := document.ParseOverrides([]string{first, second, third})
		if err != nil {
			require.ErrorIs(t, err, document.ErrUsage)
			return
		}
		base, ok := document.FromGo(map[string]any{"a": map[string]any{"b": 1}, "c": "x"})
		require.NoError(t, ok)
		start, _ := base.Map()
		require.GreaterOrEqual(t, document.Merge(start, m).Len(), m.Len())
	})
}
