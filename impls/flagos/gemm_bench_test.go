package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/cpufeat/cpufeattest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// gemmShapes are products of training steps of 2048 tokens: "fwd" y = x·Wᵀ, "dgrad"
// dx = dy·W, "wgrad" dW = dyᵀ·x.
var gemmShapes = []struct {
	name           string
	m, n, k        int
	transA, transB bool
}{
	{"fwd", 512, 512, 512, true, false},
	{"fwd", 2048, 192, 192, true, false},
	{"fwd", 2048, 576, 192, true, false},
	{"fwd", 2048, 864, 288, true, false},
	{"fwd", 2048, 1536, 512, true, false},
	{"fwd", 2048, 1376, 512, true, false},
	{"fwd", 2048, 512, 1376, true, false},
	{"fwd", 2048, 4096, 512, true, false},
	{"dgrad", 2048, 192, 512, false, false},
	{"dgrad", 2048, 512, 1376, false, false},
	{"dgrad", 2048, 1376, 512, false, false},
	{"dgrad", 2048, 512, 4096, false, false},
	{"wgrad", 192, 192, 2048, false, true},
	{"wgrad", 288, 768, 2048, false, true},
	{"wgrad", 512, 512, 2048, false, true},
	{"wgrad", 1376, 512, 2048, false, true},
	{"wgrad", 512, 1376, 2048, false, true},
	{"wgrad", 4096, 512, 2048, false, true},
	{"fwd", 256, 256, 64, true, false},
	{"fwd", 64, 64, 64, true, false},
	{"fwd", 1, 512, 512, true, false},
}

// measure reports the mean rate of calls of this many operations, and that of the
// fastest one, which other load on the machine disturbs least.
func measure(b *testing.B, flop float64, call func() error) {
	b.Helper()
	b.ReportAllocs()
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
	b.ReportMetric(flop/float64(best.Nanoseconds()), "best-GFLOP/s")
}

func BenchmarkGemm(b *testing.B) {
	run := flagosRun(b, gemm.GenericGemm)
	for _, s := range gemmShapes {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/m=%d/n=%d/k=%d/workers=%d", s.name, s.m, s.n, s.k, workers), func(b *testing.B) {
				pool := parallel.New(workers)
				defer pool.Close()
				e := opregistry.NewExec(pool, 0)
				a := gemmArgs(b, rand.New(rand.NewPCG(1, 1)), s.m, s.n, s.k, s.transA, s.transB)
				measure(b, 2*float64(s.m)*float64(s.n)*float64(s.k), func() error { return run(e, a) })
			})
		}
	}
}

func BenchmarkGemmISA(b *testing.B) {
	run := flagosRun(b, gemm.GenericGemm)
	e := opregistry.NewExec(nil, 0)
	a := gemmArgs(b, rand.New(rand.NewPCG(1, 1)), 512, 512, 512, true, false)
	bench := func(b *testing.B) {
		measure(b, 2*512*512*512, func() error { return run(e, a) })
	}
	cpufeattest.Each(b, bench)
	for _, i := range reference.Source().Impls {
		if i.Op == opregistry.Handle(gemm.GenericGemm) {
			run = i.Run.(opregistry.Func[gemm.GenericGemmArgs])
			b.Run("reference", bench)
		}
	}
}
