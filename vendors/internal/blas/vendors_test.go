package blas_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
	"github.com/primus-fl/primus/vendors/onednn"
	"github.com/primus-fl/primus/vendors/openblas"
)

// vendors returns the sources of the libraries that are installed.
func vendors(t *testing.T) []opregistry.Source {
	t.Helper()
	blas, dnn := openblas.New(openblas.Options{}), onednn.New(onednn.Options{})
	var found []opregistry.Source
	for _, src := range []opregistry.Source{blas.Source(), dnn.Source()} {
		if err := src.Impls[0].Available(); err != nil {
			t.Log(err)
			continue
		}
		found = append(found, src)
	}
	t.Log(blas.Info())
	return found
}

func TestVendorsTogether(t *testing.T) {
	found := vendors(t)
	if len(found) < 2 {
		t.Skip("needs OpenBLAS and oneDNN")
	}
	for i := range 4 {
		src := found[i%2]
		t.Run(src.Name, func(t *testing.T) {
			t.Parallel()
			blastest.Differential(t, src.Impls[0].Run.(blastest.Gemm), 6, 130)
		})
	}
}
