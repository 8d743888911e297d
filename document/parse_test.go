package document

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

type (
	list  = List
	tuple = Tuple
	dict  = Dict
)

func TestParse(t *testing.T) {
	t.Parallel()
	huge := new(big.Int).Lsh(big.NewInt(1), 80)
	tests := []struct {
		text string
		want any
	}{
		{"[1, -2, +3]", list{int64(1), int64(-2), int64(3)}},
		{"[0x10, 0o7, 0b1, 1_000, 00]", list{int64(16), int64(7), int64(1), int64(1000), int64(0)}},
		{"[1., .5, 1e-4, 1_0.5e1_0, 09.5]", list{1.0, .5, 1e-4, 10.5e10, 9.5}},
		{"[-1208925819614629174706176]", list{huge.Neg(huge)}},
		{"[None, True, False]", list{nil, true, false}},
		{"()", tuple{}},
		{"(1,)", tuple{int64(1)}},
		{"((1))", int64(1)},
		{"[]", list{}},
		{"[1], [2]", tuple{list{int64(1)}, list{int64(2)}}},
		{"[1],", tuple{list{int64(1)}}},
		{"{}", dict{}},
		{"[set()]", list{list{}}},
		{"{1, 2, 1,}", list{int64(1), int64(2)}},
		{"{(1, 2)}", list{tuple{int64(1), int64(2)}}},
		{"{'a': 1, 'b': {'c': None}, 'a': 2}", dict{{"a", int64(2)}, {"b", dict{{"c", nil}}}}},
		{`['a' "b" u'c']`, list{"abc"}},
		{`[r'\n', b'\x00\377', rb'\x']`, list{`\n`, []byte{0, 255}, []byte(`\x`)}},
		{`['\x41\u00e9\U0001F600\101\t\q\'', '''it's''']`, list{"Aé😀A\t\\q'", "it's"}},
		{"['a\\\nb']", list{"ab"}},
		{"[1, # one\n2\\\n]", list{int64(1), int64(2)}},
		{"[1]\t", list{int64(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := parseLiteral(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "[", "[1", "[1 2]", "[,]", "(,)", "[1]]", "[1], ,", "[1], 2 3", "[1] 2", "{1: 2, 3}", "{1, 2: 3}", "{'a': }", "[x]", "[null]", "[007]", "[1_]", "[0xG]", "[1.2.3]",
		"[1j]", "[...]", "[--1]", "[-'a']", "[-True]", "[f'x']", "['a", "['a\nb']", `['\x4']`, `['\ud800']`, `['\N{BULLET}']`, `['\`, "['a' b'b']",
		"[b'é']", "[1]\n", "[1+2]", "[set(1)]", "[" + strings.Repeat("9", 5000) + "]", strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		_, err := parseLiteral(text)
		require.ErrorIs(t, err, ErrSyntax, text)
	}
	for _, text := range []string{"{[1]: 2}", "{{}}", "{([],)}", "{{1}: 2}"} {
		_, err := parseLiteral(text)
		require.ErrorIs(t, err, ErrUnhashable, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[1, {'k': (None, b'x')}]")
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		_, err := parseLiteral(text)
		if !errors.Is(err, ErrUnhashable) && err != nil {
			require.ErrorIs(t, err, ErrSyntax)
		}
	})
}
