package world

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzClaims compares what two ranks say of themselves: the same text agrees with itself, and what
// differs is an error that names the second rank.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"version": "1", "data": "a", "parameters": {"lr": "1"}}`), []byte(`{"version": "1", "data": "b", "parameters": {"x": "1"}}`))
	f.Add([]byte(`{"data": "a"}`), []byte(`{"data": "a", "parameters": {"x": "1"}}`))
	f.Add([]byte(`{"manifest": {"ops": [{}]}}`), []byte(`{"manifest": null}`))
	f.Add([]byte("null"), []byte("[]"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var err error
		primustest.Cost(t, len(first)+len(second), 10_000, func() { err = compareClaims([][]byte{first, second}) })
		if err != nil {
			require.True(t, strings.Contains(err.Error(), "rank 0") || strings.Contains(err.Error(), "rank 1"), err)
		}
		if err := compareClaims([][]byte{first, first}); err != nil {
			require.NotErrorAs(t, err, new(*CommonError))
		}
	})
}
