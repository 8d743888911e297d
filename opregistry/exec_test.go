package opregistry_test

import (
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
)

type taskFunc func(part int)

func (f taskFunc) Do(part int) { f(part) }

// twice is a Pool that reports two workers and runs everything in the caller.
type twice struct{ opregistry.Serial }

func (twice) Workers() int { return 2 }

func TestExec(t *testing.T) {
	t.Parallel()
	x := opregistry.NewExec(nil, 7)
	assert.Equal(t, device.Stream(7), x.Stream())
	assert.Equal(t, 1, x.Pool().Workers())
	var parts []int
	x.Pool().Run(3, taskFunc(func(part int) { parts = append(parts, part) }))
	x.Pool().Run(0, taskFunc(func(part int) { parts = append(parts, part) }))
	assert.Equal(t, []int{0, 1, 2}, parts)
	assert.Equal(t, 2, opregistry.NewExec(twice{}, 0).Pool().Workers())
}

func TestScratch(t *testing.T) {
	t.Parallel()
	x := opregistry.NewExec(nil, 0)
	for _, n := range []int{0, 1, 15, 16, 17, 64, 1000, 1 << 16} {
		buf := x.Scratch(n)
		require.Len(t, buf, n)
		if n > 0 {
			assert.Zero(t, uintptr(unsafe.Pointer(&buf[0]))%64, "%d floats are aligned to a cache line", n)
			buf[n-1] = 1
		}
		x.Release(buf)
	}
	one, two := x.Scratch(100), x.Scratch(100)
	assert.NotSame(t, unsafe.SliceData(one), unsafe.SliceData(two), "what is out is not handed out again")
	x.Release(one)
	again := x.Scratch(112)
	assert.Same(t, unsafe.SliceData(one), unsafe.SliceData(again), "what came back is used again, up to its power of two")
	x.Release(two)
	x.Release(again)
}

func TestScratchAllocatesNothingInASteadyState(t *testing.T) {
	x := opregistry.NewExec(nil, 0)
	sizes := []int{0, 3, 64, 1000, 4097}
	allocs := testing.AllocsPerRun(100, func() {
		var out [5][]float32
		for i, n := range sizes {
			out[i] = x.Scratch(n)
		}
		for _, buf := range out {
			x.Release(buf)
		}
	})
	assert.Zero(t, allocs)
}

// Buffers that are in use at the same time must not share memory.
func TestScratchHammer(t *testing.T) {
	t.Parallel()
	const callers, rounds = 8, 200
	x := opregistry.NewExec(nil, 0)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			<-start
			for round := range rounds {
				mine := x.Scratch(1 + (caller*7+round*13)%300)
				for i := range mine {
					mine[i] = float32(caller)
				}
				for _, v := range mine {
					if v != float32(caller) {
						assert.Equal(t, float32(caller), v)
						return
					}
				}
				x.Release(mine)
			}
		})
	}
	close(start)
	wg.Wait()
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, pool := range []opregistry.Pool{nil, opregistry.Goroutines(0), opregistry.Goroutines(1), opregistry.Goroutines(3), opregistry.Goroutines(100)} {
		x := opregistry.NewExec(pool, 0)
		for n := range 20 {
			for _, size := range []int{1, 2, 3, 7, 19, 20, 1000, math.MaxInt} {
				counts := make([]atomic.Int32, n)
				x.Blocks(n, size, func(lo, hi int) {
					assert.Zero(t, lo%size)
					assert.Less(t, lo, hi)
					assert.True(t, hi-lo == size || hi == n, "only the last block is shorter")
					for i := lo; i < hi; i++ {
						counts[i].Add(1)
					}
				})
				for i := range counts {
					assert.Equal(t, int32(1), counts[i].Load(), "item %d of %d in blocks of %d", i, n, size)
				}
			}
		}
		assert.PanicsWithValue(t, "BUG: opregistry: got blocks of 0 items, want at least 1", func() { x.Blocks(1, 0, nil) })
	}
}

// All workers of a pool are at work at the same time.
func TestGoroutinesRunTogether(t *testing.T) {
	t.Parallel()
	const workers = 3
	var all sync.WaitGroup
	all.Add(workers)
	assert.Equal(t, workers, opregistry.Goroutines(workers).Workers())
	opregistry.NewExec(opregistry.Goroutines(workers), 0).Blocks(workers, 1, func(int, int) {
		all.Done()
		all.Wait() // returns only when every block has begun
	})
}

func TestGoroutinesCarryPanics(t *testing.T) {
	t.Parallel()
	x := opregistry.NewExec(opregistry.Goroutines(4), 0)
	var after atomic.Int32
	assert.PanicsWithValue(t, "the first", func() {
		x.Blocks(1000, 1, func(lo, _ int) {
			if lo == 0 {
				panic("the first")
			}
			after.Add(1)
		})
	})
	assert.Panics(t, func() { x.Blocks(10, 1, func(int, int) { goruntime.Goexit() }) })
	ran := 0
	opregistry.NewExec(opregistry.Goroutines(2), 0).Blocks(3, 3, func(lo, hi int) { ran = hi - lo })
	assert.Equal(t, 3, ran, "the pool is used after a panic")
}
