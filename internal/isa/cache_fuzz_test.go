package isa

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzCache reads files of measurements. Whatever they hold, it is a rate that can be one of this
// machine, or none; and one that is read is written and read the same.
//
// Oracle: round trip.
func FuzzCache(f *testing.F) {
	here := hardware{CPU: "one", Primus: "1"}
	for _, text := range []string{`{"cpu": "one", "primus": "1", "bf16_rate": 1.5}`, `{"cpu": "one", "primus": "1", "bf16_rate": 1e300}`, `{"cpu": "other"}`, "null", "[]", ""} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		file := filepath.Join(dir, "rate.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		rate, ok := read(file, here)
		if !ok {
			return
		}
		require.True(t, sane(rate))
		require.NoError(t, write(file, here, rate))
		again, ok := read(file, here)
		require.True(t, ok)
		require.Equal(t, rate, again)
	})
}
