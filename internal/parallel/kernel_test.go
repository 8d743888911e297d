package parallel_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

type scaleArgs struct {
	x, y  []float32
	by    float32
	parts int
}

// scale returns a kernel that computes y[i] = by·x[i].
func scale() *parallel.Kernel[scaleArgs] {
	return parallel.NewKernel(func(a *scaleArgs, part int) {
		lo, hi := parallel.Split(len(a.x), a.parts, part)
		for i := lo; i < hi; i++ {
			a.y[i] = a.by * a.x[i]
		}
	})
}

func TestKernel(t *testing.T) {
	t.Parallel()
	kernel := scale()
	pools := []opregistry.Pool{opregistry.Serial{}, newPool(t, 3)}
	var wg sync.WaitGroup
	for caller := range 6 {
		wg.Go(func() {
			x, y := make([]float32, 101), make([]float32, 101)
			for round := range 300 {
				for i := range x {
					x[i] = float32(i + caller)
				}
				kernel.Run(pools[round%2], 7, scaleArgs{x, y, float32(round), 7})
				for i := range y {
					if y[i] != float32(round)*x[i] {
						assert.Equal(t, float32(round)*x[i], y[i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestKernelAllocatesNothing(t *testing.T) {
	pool := parallel.New(2)
	defer pool.Close()
	kernel := scale()
	x, y := make([]float32, 64), make([]float32, 64)
	run := func() { kernel.Run(pool, 8, scaleArgs{x, y, 2, 8}) }
	run()
	// The average is rounded down: a garbage collection may empty the kernel's pool once during the
	// runs.
	assert.Zero(t, testing.AllocsPerRun(1000, run))
}

func TestKernelPanicReachesCaller(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	kernel := scale()
	value := raised(func() { kernel.Run(pool, 4, scaleArgs{make([]float32, 8), nil, 1, 4}) })
	require.ErrorContains(t, value.(error), "index out of range")
	y := make([]float32, 8)
	kernel.Run(pool, 4, scaleArgs{[]float32{1, 2, 3, 4, 5, 6, 7, 8}, y, 2, 4})
	assert.Equal(t, []float32{2, 4, 6, 8, 10, 12, 14, 16}, y)
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for parts := 1; parts < 12; parts++ {
			next, smallest, largest := 0, n, 0
			for i := range parts {
				lo, hi := parallel.Split(n, parts, i)
				require.Equal(t, next, lo)
				next, smallest, largest = hi, min(smallest, hi-lo), max(largest, hi-lo)
			}
			require.Equal(t, n, next)
			require.LessOrEqual(t, largest-smallest, 1)
		}
	}
}
