package document_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
)

func TestBuilder(t *testing.T) {
	t.Parallel()
	var b document.Builder
	assert.Equal(t, 0, b.Map().Len())
	b.Set("z", document.StringValue("first"))
	b.Set("a", document.ListValue([]document.Value{{}, document.StringValue("x")}))
	b.Set("z", document.StringValue("second"))
	built := b.Map()
	assert.Equal(t, []string{"z", "a"}, built.Keys())
	assert.Equal(t, map[string]any{"z": "second", "a": []any{nil, "x"}}, built.Any())
	b.Set("other", document.MapValue(built))
	assert.Equal(t, []string{"other"}, b.Map().Keys(), "a builder starts again")
	assert.Equal(t, 2, built.Len())

	more := document.NewBuilder(built)
	more.Set("z", document.MapValue(nil))
	more.Set("new", document.Value{})
	assert.Equal(t, map[string]any{"z": map[string]any{}, "a": []any{nil, "x"}, "new": nil}, more.Map().Any())
	assert.Equal(t, map[string]any{"z": "second", "a": []any{nil, "x"}}, built.Any(), "a map that was built does not change")
	onto := document.NewBuilder(nil)
	onto.Set("a", document.Value{})
	assert.Equal(t, 1, onto.Map().Len())
}

func TestValuesKeepTheirPlace(t *testing.T) {
	t.Parallel()
	place := document.Origin{File: "f", Line: 2}
	v := document.StringValue("old").At(place)
	assert.Equal(t, place, v.Origin())
	over := params(t, "n=007")
	n, _ := over.Lookup("n")
	n = n.Replacing(v).Replacing(document.StringValue("oldest"))
	require.Len(t, n.Replaced(), 2)
	assert.Equal(t, "oldest", n.Replaced()[1].Any(), "what was replaced first lies lowest")

	named := n.WithString("seven")
	assert.Equal(t, "seven", named.Text())
	assert.Equal(t, n.Origin(), named.Origin())
	assert.Equal(t, n.Replaced(), named.Replaced())
	assert.Equal(t, int64(7), n.Any())
}

func TestIdentifier(t *testing.T) {
	t.Parallel()
	root, _, err := formats.All().Parse(t.Context(), "x.yaml", []byte("text: a\nint: 7\nguessed: ${N}\nnothing: null\nlist: [a]\n"))
	require.NoError(t, err)
	root, _, err = document.Substitute(root, func(string) (string, bool) { return "007", true })
	require.NoError(t, err)
	m, _ := root.Map()
	over := params(t, "none=null", "literal=[1]")
	for key, want := range map[string]string{"text": "a", "guessed": "007", "int": "", "nothing": "", "list": "", "none": "", "literal": ""} {
		v, ok := document.Merge(m, over).Lookup(key)
		require.True(t, ok, key)
		text, isName := v.Identifier()
		assert.Equal(t, want, text, key)
		assert.Equal(t, want != "", isName, key)
	}
}

func TestPartsOfMaps(t *testing.T) {
	t.Parallel()
	m, ok := fromGo(t, map[string]any{"a": "null", "b": map[string]any{"c": "null", "d": []any{"null"}}, "e": "null "}).Map()
	require.True(t, ok)
	assert.Equal(t, []string{"b"}, m.Without("a", "e", "missing").Keys())
	assert.Equal(t, map[string]any{"a": nil, "b": map[string]any{"c": nil, "d": []any{"null"}}, "e": "null "}, m.NullStrings().Any())
	assert.Equal(t, 3, m.Len())
	var none *document.Map
	assert.Equal(t, 0, none.Without("a").NullStrings().Len())
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{".yaml", ".yml", ".json", ".toml"}, formats.All().Extensions())
	for _, extension := range formats.All().Extensions() {
		_, err := formats.All().RendererOf("x" + extension)
		require.NoError(t, err)
	}
}
