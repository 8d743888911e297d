package document_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	object := func(data map[string]any) *document.Map {
		m, ok := fromGo(t, data).Map()
		require.True(t, ok)
		return m
	}
	base := object(map[string]any{"a": map[string]any{"x": 1, "y": 2}, "b": []any{1, 2}, "c": map[string]any{"z": 1}})
	over := object(map[string]any{"a": map[string]any{"y": 3, "w": 4}, "b": []any{9}, "c": nil, "d": 5})
	got := document.Merge(base, over)
	assert.Equal(t, map[string]any{
		"a": map[string]any{"x": int64(1), "y": int64(3), "w": int64(4)}, "b": []any{int64(9)}, "c": nil, "d": int64(5),
	}, got.Any())
	assert.Equal(t, []string{"a", "b", "c", "d"}, got.Keys())
	y, _ := base.Get("a.y")
	assert.Equal(t, int64(2), y.Any(), "arguments stay as they are")
	assert.True(t, document.Merge(nil, base).Equal(base))
	assert.True(t, document.Merge(base, nil).Equal(base))
	assert.False(t, base.Equal(over))
	var none *document.Map
	assert.Zero(t, none.Len())
	assert.Empty(t, none.Keys())
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a, b := params(t, "x=1", "m.a=1", "m.b=[1]", "gone=1"), params(t, "m.a=1.0", "m.b=[1]", "m.c=None", "x=1", "new={'k': 1}")
	var got []string
	for _, d := range document.Diff(a, b) {
		line := d.Path
		for _, side := range []*document.Value{d.A, d.B} {
			if side != nil {
				line += " " + side.String()
			} else {
				line += " -"
			}
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{"m.a 1 1.0", "m.c - null", "gone 1 -", `new - {"k":1}`}, got)
	assert.Empty(t, document.Diff(a, a))
}
