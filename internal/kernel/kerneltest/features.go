package kerneltest

import (
	"testing"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// runner is a *testing.T or a *testing.B.
type runner[T any] interface {
	testing.TB
	Run(name string, f func(T)) bool
}

// EachFeature runs f with every set of kernels that this machine can run, the best one first
// and plain Go last.
func EachFeature[T runner[T]](t T, f func(T)) {
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
