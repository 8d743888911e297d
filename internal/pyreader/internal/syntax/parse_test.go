package syntax_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"

	"github.com/primus-fl/primus/internal/primustest"
)

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"x = (1,\n":              "m.py:2:1: '(' was never closed",
		"x = )":                  "m.py:1:5: unmatched ')'",
		"if x:\npass\n":          "m.py:2:1: given 'pass', want indent",
		"  x = 1\n":              "m.py:1:1: given indent, want an expression",
		"if x:\n    a\n  b\n":    "m.py:3:3: unindent does not match any outer indentation level",
		"x = 'abc\n":             "m.py:1:5: unterminated string",
		"x = f'{a'\n":            "m.py:1:9: unterminated string",
		"x = f'{}'\n":            "m.py:1:8: f-string: valid expression required before '}'",
		"x = f'{a!z}'\n":         "m.py:1:9: f-string: given the conversion \"z\", want r, s or a",
		"f(a=1, 2)":              "m.py:1:8: positional argument follows keyword argument",
		"1 = x":                  "m.py:1:1: cannot assign to this expression",
		"def f(a=1, b): pass":    "m.py:1:12: parameter without a default follows parameter with a default",
		"x = 012":                "m.py:1:5: leading zeros in decimal integer literals are not permitted",
		"x = $":                  "m.py:1:5: invalid character '$'",
		"x = \xff":               "m.py:1:5: given the byte 0xff, want UTF-8",
		"# coding: latin-1\nx=1": "m.py:1:1: given the encoding \"latin-1\", want utf-8",
		"x = " + strings.Repeat("(", 300) + strings.Repeat(")", 300): "m.py:1:205: too many nested parentheses",
		strings.Repeat("not ", 5000) + "x":                           "m.py:1:3997: too deeply nested",
		strings.Repeat("-", 5000) + "x":                              "m.py:1:1000: too deeply nested",
		strings.Repeat("lambda: ", 5000) + "x":                       "m.py:1:7993: too deeply nested",
	} {
		_, err := syntax.Parse("m.py", []byte(source), nil)
		var fault *syntax.Error
		require.ErrorAs(t, err, &fault, "%.60s", source)
		if len(source) < 4000 {
			assert.Equal(t, want, err.Error(), source)
		} else {
			assert.Contains(t, err.Error(), "too deeply nested")
		}
	}
}

// TestNewerPython reads what older interpreters do not, so the comparison with CPython may not
// cover it.
func TestNewerPython(t *testing.T) {
	t.Parallel()
	source := "type Pair[T: int, *Ts, **P] = tuple[T]\n" +
		"def f[T](x: T) -> T: return f'{x!r:>{w}}' f'{d[\"k\"]=}' f'{\"a\" f\"{b\"c\"}\"}'\n" +
		"try: pass\nexcept* OSError as e: pass\n" +
		"match = 1\nmatch match:\n  case {'a': 1, **rest} | [1, *_] if match: pass\n  case A.B(x, y=2) as z: pass\n" +
		"with (open(a) as b, c): pass\n"
	f, err := syntax.Parse("m.py", []byte(strings.Replace(source, `{b"c"}`, `{b + "c"}`, 1)), nil)
	require.NoError(t, err)
	var kinds []string
	for _, s := range f.Body {
		kinds = append(kinds, strings.TrimPrefix(strings.SplitN(f.Source(s), " ", 2)[0], "@"))
	}
	assert.Equal(t, []string{"type", "def", "try:", "match", "match", "with"}, kinds)
}

// Reading ends when it may not go on, in the scanner and in the parser, whatever the text is.
func TestReadingEndsWhenItMayNotGoOn(t *testing.T) {
	for name, source := range map[string]string{
		"statements": strings.Repeat("x = 1\n", 5000), "a list": "x = [" + strings.Repeat("1,", 5000) + "]\n",
		"a text": "x = (" + strings.Repeat("'a' ", 5000) + ")\n", "words": strings.Repeat("if x:\n  pass\n", 3000),
	} {
		all := 0
		_, err := syntax.Parse("m.py", []byte(source), func() error { all++; return nil })
		require.NoError(t, err, name)
		assert.Greater(t, all, 4, name)
		for _, last := range []int{1, all} {
			over, n := errors.New("over"), 0
			_, err := syntax.Parse("m.py", []byte(source), func() error {
				if n++; n == last {
					return over
				}
				return nil
			})
			assert.ErrorIs(t, err, over, name)
			assert.Equal(t, last, n, name)
		}
	}
}

// FuzzParse reads anything without a panic, and gives nodes that lie within the file and within
// their parents.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "x = 1\n", "@d(1, a=2)\ndef f(a, /, b=1, *c, d, e=2, **g) -> int:\n\treturn a\n", "f'{x!r:>{w}}{{}}{y=}'", "rb'\\x00' b''",
		"match x:\n case [a, *b] | {'k': v, **r} if c: pass\n case _: pass\n", "if a:\n  b\nelif c: d\nelse:\n  e\n", "x[a:b, ...:c]",
		"from .a.b import (c as d, e,)\n", "lambda *, a=1: (yield)", "async def f():\n async with a as b: await c\n", "a\\\n  b", "'''\n", "0x_1f 1_0.5e-3j .5",
		"with (a as b, c): pass", "[x async for x in y if z]", "type X[T] = T", "try: a\nexcept* B as c: d\nfinally: e", "f'''{\n x # c\n}'''", "\ufeffé = '\\N{DASH}'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		defer primustest.Measured(t, len(source))()
		file, err := syntax.Parse("fuzz.py", []byte(source), nil)
		if err != nil {
			var fault *syntax.Error
			require.ErrorAs(t, err, &fault)
			return
		}
		for _, s := range file.Body {
			syntax.Walk(s, func(n *syntax.Node) bool {
				r := n.Span
				if r.Start < 0 || r.Start > r.End || r.End > len(file.Text) {
					t.Fatalf("%T has the span %v of %d bytes", n, r, len(file.Text))
				}
				return true
			})
		}
		dumpAST(file)
	})
}
