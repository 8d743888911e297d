package ops_test

import (
	"errors"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/ops"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

func FuzzCatalog(f *testing.F) {
	f.Add(`[{"op": "gemm", "impl_id": "vendor.acme", "kind": "vendor", "vendor": "acme", "priority": 100, "available": {"return": true}}]`)
	f.Add(`[{"op": "x", "impl_id": "a", "kind": "vendor"}]`)
	f.Add("[{\"op\"\xff: [}")
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		entries, err := ops.Parse("f", []byte(text))
		if err == nil {
			assert.LessOrEqual(t, len(entries), len(text))
			return
		}
		fault, ok := errors.AsType[*ops.Error](err)
		require.True(t, ok, "%v", err)
		assert.Positive(t, fault.Line)
		assert.Positive(t, fault.Column)
	})
}
