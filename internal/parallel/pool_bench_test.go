package parallel_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// toil performs n dependent multiplications, which take about n nanoseconds.
func toil(n int) float64 {
	x := 1.0000001
	for range n {
		x *= 1.0000001
	}
	return x
}

type toilArgs struct {
	n    int
	sink []float64
}

// BenchmarkRun measures calls of 8 parts on two workers, by the length of a part and of the serial
// work between two calls. "p50-ns" is the median time of a call and "speed-up" is how many times
// faster that is than on one worker; a mean would measure other programs on a busy machine more
// than the pool.
func BenchmarkRun(b *testing.B) {
	const parts = 8
	pool := parallel.New(2)
	defer pool.Close()
	kernel := parallel.NewKernel(func(a *toilArgs, part int) { a.sink[part*8] += toil(a.n) })
	sink := make([]float64, parts*8)
	median := func(b *testing.B, p opregistry.Pool, between, n int) time.Duration {
		b.Helper()
		times := make([]time.Duration, b.N)
		for i := range times {
			sink[0] += toil(between)
			start := time.Now()
			kernel.Run(p, parts, toilArgs{n, sink})
			times[i] = time.Since(start)
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	for _, between := range []int{0, 5_000, 200_000} {
		for _, n := range []int{0, 500, 2_000, 20_000} {
			b.Run(fmt.Sprintf("between=%d/part=%d", between, n), func(b *testing.B) {
				b.ReportAllocs()
				two := median(b, pool, between, n)
				b.StopTimer()
				one := median(b, opregistry.Serial{}, between, n)
				b.ReportMetric(float64(two), "p50-ns")
				b.ReportMetric(float64(one)/float64(two), "speed-up")
			})
		}
	}
}
