package blas_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
	"github.com/primus-fl/primus/vendors/onednn"
	"github.com/primus-fl/primus/vendors/openblas"
)

// vendors returns the sources of the libraries that are installed.
func vendors(t testing.TB) []opregistry.Source {
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

// BenchmarkVendors measures x·Wᵀ as a layer calls it. best-GFLOP/s is the rate of the fastest call,
// which a busy machine disturbs least.
func BenchmarkVendors(b *testing.B) {
	x := opregistry.NewExec(nil, 0)
	for _, s := range [][3]int{
		{32, 32, 32}, {64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
		{2048, 288, 288}, {2048, 768, 288}, {2048, 288, 768}, {2048, 4096, 288}, {2048, 512, 1376},
	} {
		m, n, k := s[0], s[1], s[2]
		a := gemm.GenericGemmArgs{
			A: of(b, floats(n*k), n, k), TransA: true,
			B: of(b, floats(m*k), m, k), D: of(b, floats(m*n), m, n),
		}
		flop := 2 * float64(m) * float64(n) * float64(k)
		for _, src := range vendors(b) {
			run := src.Impls[0].Run.(blastest.Gemm)
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, n, k, src.Name), func(b *testing.B) {
				if err := run(x, a); err != nil {
					b.Skip(err)
				}
				best := time.Duration(math.MaxInt64)
				b.ReportAllocs()
				for b.Loop() {
					start := time.Now()
					if err := run(x, a); err != nil {
						require.NoError(b, err)
					}
					best = min(best, time.Since(start))
				}
				b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				b.ReportMetric(flop/float64(best.Nanoseconds()), "best-GFLOP/s")
			})
		}
	}
}
