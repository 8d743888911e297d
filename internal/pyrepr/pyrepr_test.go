package pyrepr_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/pyrepr"
)

// The texts are those of Python 3.11's repr.
func TestRepr(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", -2.5: "-2.5", 1e15: "1000000000000000.0", 1e16: "1e+16", 1e-4: "0.0001", 1e-5: "1e-05", 1.5e300: "1.5e+300",
		math.Inf(1): "inf", math.Inf(-1): "-inf",
	} {
		assert.Equal(t, want, pyrepr.Float(f))
	}
	assert.Equal(t, "nan", pyrepr.Float(math.NaN()))
	for text, want := range map[string]string{
		"": "''", "a": "'a'", "it's": `"it's"`, `it's "x"`: `'it\'s "x"'`, "\n\r\t\\": `'\n\r\t\\'`, "\x00\u0085é": `'\x00\x85é'`, "\u2028": `'\u2028'`, "\U000e0001": `'\U000e0001'`,
	} {
		assert.Equal(t, want, pyrepr.Quote(text))
	}
}
