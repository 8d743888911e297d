package opregistry_test

import (
	"sync"
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
