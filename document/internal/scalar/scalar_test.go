package scalar_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/internal/scalar"
)

func huge(t *testing.T, text string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(text, 10)
	require.True(t, ok)
	return n
}

func TestTyping(t *testing.T) {
	t.Parallel()
	date, instant := scalar.Date("2025-01-02"), scalar.Time("2025-01-02T03:04:05.600000-00:30")
	long := huge(t, "12345678901234567890")
	// Each text under the three rules; nil stands for null.
	tests := []struct {
		text                string
		yaml, env, override any
	}{
		{"", nil, "", ""},
		{"~", nil, "~", "~"},
		{"null", nil, "null", nil},
		{"None", "None", "None", nil},
		{"yes", true, "yes", "yes"},
		{"y", "y", "y", "y"},
		{"Off", false, "Off", "Off"},
		{"tRuE", "tRuE", true, true},
		{"42", int64(42), int64(42), int64(42)},
		{"-0", int64(0), int64(0), int64(0)},
		{"+5", int64(5), "+5", int64(5)},
		{"1_000", int64(1000), "1_000", int64(1000)},
		{"0777", int64(511), int64(777), int64(777)},
		{"08", "08", int64(8), int64(8)},
		{"0o17", "0o17", "0o17", "0o17"},
		{"0x1F", int64(31), "0x1F", "0x1F"},
		{"-0b11", int64(-3), "-0b11", "-0b11"},
		{"1:30", int64(90), "1:30", "1:30"},
		{"-1:30.5", -90.5, "-1:30.5", "-1:30.5"},
		{"1e5", "1e5", 1e5, 1e5},
		{"1.0e5", "1.0e5", 1e5, 1e5},
		{"1.0e+5", 1e5, 1e5, 1e5},
		{".5", .5, .5, .5},
		{"-.5", "-.5", -.5, -.5},
		{"5.", 5.0, 5.0, 5.0},
		{"1_0.5", 10.5, "1_0.5", 10.5},
		{".inf", math.Inf(1), ".inf", ".inf"},
		{"-.INF", math.Inf(-1), "-.INF", "-.INF"},
		{"inf", "inf", "inf", "inf"},
		{"12345678901234567890", long, long, long},
		{"2025-01-02", date, "2025-01-02", "2025-01-02"},
		{"2025-1-2", "2025-1-2", "2025-1-2", "2025-1-2"},
		{"2025-1-2 3:04:05.6 -0:30", instant, "2025-1-2 3:04:05.6 -0:30", "2025-1-2 3:04:05.6 -0:30"},
		{" 1", " 1", " 1", " 1"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := scalar.YAML(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.yaml, got, "yaml")
			got, err = scalar.Env(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.env, got, "env")
			got, err = scalar.Override(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.override, got, "override")
		})
	}
}

func TestTagged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		tag, text string
		want      any
	}{
		{"!!str", "5", "5"},
		{"!!int", "0x10", int64(16)},
		{"!!int", "-1:30", int64(-90)},
		{"!!float", "1", 1.0},
		{"!!float", "1e5", 1e5},
		{"!!bool", "YES", true},
		{"!!null", "x", nil},
		{"!!timestamp", "2025-01-02", scalar.Date("2025-01-02")},
		{"!!binary", "aG\n k=", []byte("hi")},
	}
	for _, tt := range tests {
		got, err := scalar.Tagged(tt.tag, tt.text)
		require.NoError(t, err, tt.tag)
		assert.Equal(t, tt.want, got, tt.tag)
	}
	for _, bad := range [][2]string{
		{"!!int", "x"}, {"!!int", ""}, {"!!int", "+-5"}, {"!!int", "0b2"}, {"!!int", "1:x"}, {"!!float", "x"}, {"!!float", "1:x.5"},
		{"!!bool", "x"}, {"!!timestamp", "x"}, {"!!binary", "?"}, {"!!set", ""},
	} {
		_, err := scalar.Tagged(bad[0], bad[1])
		require.Error(t, err, bad)
	}
}

func TestInvalidDates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"2025-13-01", "2025-02-29", "0000-01-01", "2025-01-01 24:00:00", "2025-01-01T00:00:00+24:00", "<<", "="} {
		_, err := scalar.YAML(text)
		require.Error(t, err, text)
	}
}
