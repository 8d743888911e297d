package document_test

import (
	"io"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
)

func fromGo(t *testing.T, data any) document.Value {
	t.Helper()
	v, err := document.FromGo(data)
	require.NoError(t, err)
	return v
}

func TestValueAccessors(t *testing.T) {
	t.Parallel()
	huge := new(big.Int).Lsh(big.NewInt(1), 70)
	tests := []struct {
		give any
		kind document.Kind
		name string
		text string
	}{
		{nil, document.KindNull, "null", "null"},
		{true, document.KindBool, "bool", "true"},
		{uint64(math.MaxUint64), document.KindInt, "int", "18446744073709551615"},
		{int8(-1), document.KindInt, "int", "-1"},
		{huge, document.KindInt, "int", huge.String()},
		{float32(0.5), document.KindFloat, "float", "0.5"},
		{math.NaN(), document.KindFloat, "float", ".nan"},
		{"x", document.KindString, "string", "x"},
		{[]byte("hi"), document.KindBytes, "bytes", "aGk="},
		{[]int{1}, document.KindList, "list", ""},
		{map[string]int{}, document.KindMap, "mapping", ""},
	}
	for _, tt := range tests {
		v := fromGo(t, tt.give)
		assert.Equal(t, tt.kind, v.Kind())
		assert.Equal(t, tt.name, v.Kind().String())
		assert.Equal(t, tt.text, v.Text())
		assert.Equal(t, tt.give == nil, v.IsNull())
		assert.True(t, v.Equal(fromGo(t, tt.give)))
		assert.True(t, v.Equal(fromGo(t, v.Any())))
		assert.False(t, v.Equal(fromGo(t, "other")))
		assert.True(t, v.Origin().IsZero())
	}
	assert.Equal(t, "kind(0)", document.Kind(0).String())
	n, ok := fromGo(t, 3).Int64()
	assert.True(t, ok)
	assert.Equal(t, int64(3), n)
	_, ok = fromGo(t, huge).Int64()
	assert.False(t, ok)
	f, ok := fromGo(t, huge).Float64()
	assert.True(t, ok)
	assert.InDelta(t, math.Ldexp(1, 70), f, 0)
	assert.False(t, fromGo(t, 1).Equal(fromGo(t, 1.0)))
}

func TestGetPrefersWholeKeys(t *testing.T) {
	t.Parallel()
	m, _ := fromGo(t, map[string]any{"te.gemm": map[string]any{"a.b": 1}, "te": map[string]any{"x": 2, "gemm": 3}}).Map()
	for path, want := range map[string]int64{"te.gemm.a.b": 1, "te.x": 2} {
		v, ok := m.Get(path)
		require.True(t, ok, path)
		assert.Equal(t, want, v.Any())
	}
	_, ok := m.Get("te.x.y")
	assert.False(t, ok)
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := &document.Error{
		Origin: document.Origin{File: "f", Line: 2, Column: 3}, Path: "a.b", Problem: "read", Hint: "retry", Kind: document.ErrUsage, Err: io.ErrUnexpectedEOF,
	}
	require.EqualError(t, err, "f:2:3: a.b: read: unexpected EOF; retry")
	require.ErrorIs(t, err, document.ErrUsage)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
