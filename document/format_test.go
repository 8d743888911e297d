package document_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/meter"
)

func decodeMap(t *testing.T, file, text string) (*document.Map, []document.Duplicate) {
	t.Helper()
	root, duplicates, err := formats.All().Parse(t.Context(), file, []byte(text))
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m, duplicates
}

func TestFormatsAgree(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"x.yaml": "z: 1\na: 1.0\ns: 'yes'\nt: true\nl: [1, [2.5, x]]\nm:\n  k: {deep: 0x10}\n  j: -3\nd: 2025-01-02\n",
		"x.json": `{"z": 1, "a": 1.0, "s": "yes", "t": true, "l": [1, [2.5, "x"]], "m": {"k": {"deep": 16}, "j": -3}, "d": "2025-01-02"}`,
		"x.toml": "z = 1\na = 1.0\ns = 'yes'\nt = true\nl = [1, # one\n [2.5, 'x']]\nm.k.deep = 0x1_0\nm.j = -3\nd = 2025-01-02\n",
	}
	want, _ := decodeMap(t, "x.yaml", texts["x.yaml"])
	for file, text := range texts {
		got, duplicates := decodeMap(t, file, text)
		assert.Empty(t, duplicates)
		assert.Equal(t, want.Keys(), got.Keys(), file)
		assert.Equal(t, want.Any(), got.Any(), file)
		a, _ := got.Get("a")
		assert.Equal(t, document.KindFloat, a.Kind(), file)
		deep, ok := got.Get("m.k.deep")
		require.True(t, ok, file)
		assert.Positive(t, deep.Origin().Line, file)
		assert.Positive(t, deep.Origin().Column, file)
		j, _ := got.Get("m.j")
		assert.Equal(t, int64(-3), j.Any(), file)
	}
}

func TestTOMLTables(t *testing.T) {
	t.Parallel()
	m, _ := decodeMap(t, "x.toml", "top = 1\n[a.b]\nx = inf\n[[list]]\nn = 1\n[list.sub]\ny = 2\n[[list]]\nn = 3\n[a]\nlate = 07:32:00\nzoned = 1979-05-27t07:32:00z\n[[a.deep.list]]\nq = []\n")
	assert.Equal(t, []string{"top", "a", "list"}, m.Keys())
	list, _ := m.Get("list")
	assert.Equal(t, []any{map[string]any{"n": int64(1), "sub": map[string]any{"y": int64(2)}}, map[string]any{"n": int64(3)}}, list.Any())
	late, _ := m.Get("a.late")
	assert.Equal(t, "07:32:00", late.Any())
	zoned, _ := m.Get("a.zoned")
	assert.Equal(t, "1979-05-27T07:32:00+00:00", zoned.Any())
	x, _ := m.Get("a.b.x")
	assert.Equal(t, "x.toml:3:5", x.Origin().String())
}

func TestDuplicateKeys(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"x.yaml": "a: 1\nb: 2\na: 3\n", "x.json": "{\"a\": 1,\n\"b\": 2,\n\"a\": 3}"} {
		m, duplicates := decodeMap(t, file, text)
		assert.Equal(t, []string{"a", "b"}, m.Keys())
		a, _ := m.Lookup("a")
		assert.Equal(t, int64(3), a.Any())
		require.Len(t, duplicates, 1)
		assert.Equal(t, "a", duplicates[0].Key)
		assert.Equal(t, int64(1), duplicates[0].Dropped.Any())
		assert.Regexp(t, `^`+file+`:1:\d$`, duplicates[0].Dropped.Origin().String())
		assert.Equal(t, int64(3), duplicates[0].Kept.Any())
		assert.Regexp(t, `^`+file+`:3:\d$`, duplicates[0].Kept.Origin().String())
	}
}

func TestMergeKeys(t *testing.T) {
	t.Parallel()
	m, duplicates := decodeMap(t, "x.yaml", "base: &b {x: 1, y: 1}\nother: &o {y: 2, z: 2}\nuse:\n  y: 9\n  <<: [*b, *o]\nplain: {'<<': 1}\nchain:\n  <<: *b\n  <<: *o\n")
	assert.Empty(t, duplicates)
	use, _ := m.Get("use")
	assert.Equal(t, map[string]any{"x": int64(1), "y": int64(9), "z": int64(2)}, use.Any())
	quoted, _ := m.Get("plain.<<")
	assert.Equal(t, int64(1), quoted.Any())
	chain, _ := m.Get("chain.y")
	assert.Equal(t, int64(2), chain.Any())
}

func TestSetsAreLists(t *testing.T) {
	t.Parallel()
	m, _ := decodeMap(t, "x.yaml", "a: !!set {b, 2}\n")
	a, _ := m.Lookup("a")
	assert.Equal(t, []any{"b", int64(2)}, a.Any())
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	tests := []struct{ name, file, text, want string }{
		{"alias bomb", "x.yaml", bomb.String(), "more than 131072 values"},
		{"anchor in itself", "x.yaml", "a: &a [*a]\n", `x.yaml:1:8: anchor "a" contains itself`},
		{"anchor in itself through a merge", "x.yaml", "a: &a {<<: *a}\n", "contains itself"},
		{"unknown anchor", "x.yaml", "a: *b\n", "unknown anchor"},
		{"deep", "x.yaml", strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
		{"deep JSON", "x.json", strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
		{"deep TOML", "x.toml", "a = " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
		{"very deep TOML", "x.toml", "a = " + strings.Repeat("[", 20_000), "at most 10000"},
		{"many TOML keys", "x.toml", strings.Repeat("a=1\n", 10_001), "x.toml: given 10001 brackets and equals signs, want at most 10000; YAML"},
		{"large", "x.yaml", strings.Repeat("a", document.MaxSize+1), "takes more than 1048576 bytes: want a smaller one"},
		{"two documents", "x.yaml", "a: 1\n---\nb: 2\n", "x.yaml:2:1: given a second document"},
		{"bool key", "x.yaml", "on: 1\n", `x.yaml:1:1: given bool on, want a string as key; quote it: "on"`},
		{"null key", "x.yaml", "~: 1\n", "given null, want a string as key"},
		{"list key", "x.yaml", "? [a]\n: 1\n", "given a collection as key"},
		{"merge of a scalar", "x.yaml", "<<: 1\n", "x.yaml:1:5: <<: given int 1, want a mapping"},
		{"unknown tag", "x.yaml", "a: !!python/object:x {}\n", "unsupported tag"},
		{"unknown scalar tag", "x.yaml", "a: !foo b\n", "x.yaml:1:4: unknown tag"},
		{"list of pairs", "x.yaml", "a: !!omap [b: 1]\n", `unsupported tag "!!omap"`},
		{"colon at the end", "x.yaml", "a: [b:, c]\n", `x.yaml:1:5: "b:" ends with a colon; quote it`},
		{"no date", "x.yaml", "a: 2025-02-30\n", "x.yaml:1:4: \"2025-02-30\" looks like a date"},
		{"value tag", "x.yaml", "a: =\n", "x.yaml:1:4: \"=\" alone"},
		{"bad int", "x.yaml", "a: !!int x\n", "\"x\" is not an int"},
		{"long int", "x.yaml", "a: " + strings.Repeat("9", 5000) + "\n", "more than 4300 digits"},
		{"syntax", "x.yaml", "a: b: c\n", "x.yaml:1: invalid YAML"},
		{"empty", "x.yaml", "# nothing\n", "x.yaml: file is empty"},
		{"null", "x.json", "null", "x.json: file is empty"},
		{"blank JSON", "x.json", "\n", "x.json: file is empty"},
		{"JSON syntax", "x.json", "{\n  \"a\": 1,\n  b\n}", "x.json:3:3: invalid JSON"},
		{"JSON end", "x.json", "{\"a\": [1", "invalid JSON"},
		{"JSON rest", "x.json", "{} {}", "x.json:1:4: invalid JSON: text after the value"},
		{"JSON encoding", "x.json", "\"\xff\"", "not UTF-8"},
		{"TOML syntax", "x.toml", "a = 1\nb = \n", "x.toml:2:"},
		{"TOML duplicate", "x.toml", "a = 1\na = 2\n", "invalid TOML"},
		{"unknown format", "x.ini", "a = 1", `unknown format ".ini", want one of .yaml .yml .json .toml`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := formats.All().Parse(t.Context(), tt.file, []byte(tt.text))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// What takes more than the budget is one kind of error, which says where.
func TestBudget(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"many.yaml":    "a:\n" + strings.Repeat("- 1\n", 1<<17),
		"aliases.yaml": "a: &a [" + strings.Repeat("1, ", 1<<9) + "]\nb: [" + strings.Repeat("*a, ", 1<<9) + "]\n",
		"many.json":    "[" + strings.Repeat("1,", 1<<17) + "1]",
		"many.toml":    "a = [" + strings.Repeat("1,", 1<<17) + "]",
		"long.yaml":    strings.Repeat("#", 2<<20),
	} {
		_, _, err := formats.All().Parse(t.Context(), name, []byte(text))
		limit := &meter.Error{}
		require.ErrorAs(t, err, &limit, name)
		assert.Equal(t, "want a smaller one; aliases that repeat aliases grow without bound", limit.Remedy, name)
		assert.Regexp(t, "^"+name+`(:\d+:\d+)?: the file takes more than (131072 values|1048576 bytes): `, err.Error())
	}
}

// A file is not read further when its context has ended.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	over := errors.New("nobody waits")
	ended, end := context.WithCancelCause(t.Context())
	end(over)
	for file, text := range map[string]string{"x.yaml": "a: 1", "x.json": `{"a": 1}`, "x.toml": "a = 1"} {
		_, _, err := formats.All().Parse(ended, file, []byte(text))
		require.ErrorIs(t, err, over, file)
		require.ErrorAs(t, err, new(*document.Error), file)
	}
}
