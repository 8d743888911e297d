package simd_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// eachISA runs f with every set of kernels that this machine can run, the best one
// first and plain Go last.
func eachISA(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	features := cpufeat.Features()
	for i := len(features) - 1; i >= 0; i-- {
		if cpufeat.Has(features[i]) {
			t.Run(features[i].String(), f)
		}
		defer cpufeat.Disable(features[i])()
	}
	t.Run("go", f)
}
