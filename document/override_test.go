package document_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
)

func TestParseOverrides(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	tests := []struct {
		name   string
		tokens []string
		want   object
		warns  string
	}{
		{name: "forms", tokens: []string{"a=1", "--b=2", "-c=3", "--d", "4", "--e", " f = x ", ""},
			want: object{"a": int64(1), "b": int64(2), "c": int64(3), "d": int64(4), "e": "f = x"}, warns: "--e takes the next token"},
		{name: "flags", tokens: []string{"--a", "--b", "--no-x"}, want: object{"a": true, "b": true, "no-x": true}},
		{name: "negative value", tokens: []string{"--a", "-5"}, want: object{"a": int64(-5)}},
		{name: "equals in value", tokens: []string{"a=b=c"}, want: object{"a": "b=c"}},
		{name: "nested", tokens: []string{"a.b.c=1", "a.b.d=2", "a.e=3"},
			want: object{"a": object{"b": object{"c": int64(1), "d": int64(2)}, "e": int64(3)}}},
		{name: "mapping replaced", tokens: []string{"a.b=1", "a=2"}, want: object{"a": int64(2)}, warns: `override 2 "a=2": a replaces the mapping`},
		{name: "literal extended", tokens: []string{"a={'x': {'y': 'null'}}", "a.x.z=1"}, want: object{"a": object{"x": object{"y": nil, "z": int64(1)}}}},
		{name: "numbers", tokens: []string{"a=1e-4", "b=+5", "c=007", "d=1_000", "e=1_0.5", "f=-.5e1", "g=1e400", "h=1__0", "i=0x10"},
			want: object{"a": 1e-4, "b": int64(5), "c": int64(7), "d": int64(1000), "e": 10.5, "f": -5.0, "g": math.Inf(1), "h": "1__0", "i": "0x10"}},
		{name: "words", tokens: []string{"a=TRUE", "b=null", "c=None", "d=Null", "e=yes", "f=nan"},
			want: object{"a": true, "b": nil, "c": nil, "d": "Null", "e": "yes", "f": "nan"}},
		{name: "literals", tokens: []string{"a=[1, 'x', (2,), {3}]", "b=()", "c=('p' 'q')"},
			want: object{"a": []any{int64(1), "x", []any{int64(2)}, []any{int64(3)}}, "b": []any{}, "c": "pq"}},
		{name: "no literal", tokens: []string{"a=[true,false]"}, want: object{"a": "[true,false]"}, warns: "value is taken as text"},
		{name: "empty segment", tokens: []string{"a..b=1"}, want: object{"a": object{"": object{"b": int64(1)}}}, warns: "empty segment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, warnings, err := document.ParseOverrides(tt.tokens)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.Any())
			if tt.warns == "" {
				assert.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0].String(), tt.warns)
		})
	}
}

func TestParseOverridesErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tokens []string
		want   []string
	}{
		{"bare words, all of them", []string{"ok=1", "bare", "-5"}, []string{`override 2 "bare"`, `override 3 "-5"`}},
		{"not UTF-8", []string{"b=1", "a=\xff", "--c", "\xff"}, []string{`override 2 "a=\xff": token is not UTF-8 text`, `override 3 "--c \xff"`}},
		{"separator", []string{"--"}, []string{`override 1 "--": token names no key`}},
		{"conflict", []string{"a=1", "a.b=2"}, []string{`override 2 "a.b=2": a.b cannot be set because override 1 "a=1" sets a to int 1`}},
		{"conflict with null", []string{"a.b=null", "--a.b.c", "2"}, []string{`override 2 "--a.b.c 2"`, `override 1 "a.b=null"`}},
		{"unhashable", []string{"a={[1]: 2}"}, []string{"a: a list, set or dict cannot be a key"}},
		{"other keys", []string{"a={1: 2}"}, []string{"given 1 as key, want a quoted string"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := document.ParseOverrides(tt.tokens)
			require.ErrorIs(t, err, document.ErrUsage)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// Messages show the tokens of values, and a secret is in no message.
func TestOverridesHideSecrets(t *testing.T) {
	t.Parallel()
	m, warnings, err := document.ParseOverrides([]string{"--hf_token=hf_abc", "--data.api_key", "key=abc", "train_tokens=1e9", "lr=1"})
	require.NoError(t, err)
	for path, want := range map[string]string{
		"hf_token": `override 1 "--hf_token=***"`, "data.api_key": `override 2 "--data.api_key ***"`, "train_tokens": `override 4 "train_tokens=1e9"`, "lr": `override 5 "lr=1"`,
	} {
		origin, ok := m.Origin(path)
		require.True(t, ok, path)
		assert.Equal(t, want, origin.String())
	}
	require.Len(t, warnings, 1)
	assert.NotContains(t, warnings[0].String(), "abc")
	v, _ := m.Lookup("hf_token")
	assert.Equal(t, "hf_abc", v.Text())
}
