package parallel_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/parallel"
)

// task is a function as a Task.
type task func(part int)

func (f task) Do(part int) { f(part) }

func newPool(t testing.TB, workers int) *parallel.Pool {
	t.Helper()
	p := parallel.New(workers)
	t.Cleanup(p.Close)
	return p
}

// raised returns the value that f panics with.
func raised(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// assertWorks checks that all workers of an idle pool take part: there are as many parts as
// workers, and they return only when all run at the same time.
func assertWorks(t *testing.T, p *parallel.Pool) {
	t.Helper()
	var all sync.WaitGroup
	all.Add(p.Workers())
	p.Run(p.Workers(), task(func(int) {
		all.Done()
		all.Wait()
	}))
}

func TestEachPartOnce(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{-1, 0, 1, 2, 3, 8} {
		p := newPool(t, workers)
		assert.Equal(t, max(workers, 1), p.Workers())
		for _, parts := range []int{-1, 0, 1, 2, 3, 7, 8, 9, 1000} {
			counts := make([]atomic.Int32, max(parts, 0))
			p.Run(parts, task(func(part int) { counts[part].Add(1) }))
			for part := range counts {
				require.Equal(t, int32(1), counts[part].Load(), "part %d of %d on %d workers", part, parts, workers)
			}
		}
		assertWorks(t, p)
	}
}

// The caller sees plain writes of the parts, and the parts see plain writes of the caller; the race
// detector checks it.
func TestRunOrdersMemory(t *testing.T) {
	t.Parallel()
	p := newPool(t, 3)
	in, out := make([]int, 16), make([]int, 16)
	for round := range 2000 {
		for i := range in {
			in[i] = round + i
		}
		p.Run(len(in), task(func(part int) { out[part] = 2 * in[part] }))
		for i := range out {
			require.Equal(t, 2*(round+i), out[i])
		}
	}
}

func TestManyCallers(t *testing.T) {
	t.Parallel()
	const callers, rounds = 8, 2000
	p := newPool(t, 3)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			<-start
			out := make([]int, 1+caller*2)
			for round := range rounds {
				p.Run(len(out), task(func(part int) { out[part] += round }))
				if round%100 == caller {
					failed := raised(func() { p.Run(4, task(func(part int) { panic(caller) })) })
					assert.Equal(t, caller, failed.(*parallel.Panic).Value(), "a panic belongs to its caller")
				}
			}
			for _, sum := range out {
				assert.Equal(t, rounds*(rounds-1)/2, sum)
			}
		})
	}
	close(start)
	wg.Wait()
	assertWorks(t, p)
}

func TestNestedRun(t *testing.T) {
	t.Parallel()
	p := newPool(t, 3)
	var count atomic.Int32
	p.Run(5, task(func(int) {
		order := []int{}
		p.Run(4, task(func(part int) {
			order = append(order, part)
			count.Add(1)
		}))
		assert.Equal(t, []int{0, 1, 2, 3}, order, "a nested Run is serial")
	}))
	assert.Equal(t, int32(20), count.Load())
}

// endless is a number of parts that is never reached unless a panic stops the loop.
const endless = 1 << 40

func TestPanic(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			t.Parallel()
			p := newPool(t, workers)
			for range 200 {
				value := raised(func() {
					p.Run(endless, task(func(part int) {
						if part == 5 {
							explode(boom)
						}
					}))
				})
				failed, ok := value.(*parallel.Panic)
				require.True(t, ok, "got %v", value)
				require.EqualError(t, failed, "parallel: part 5 panicked: boom")
				require.ErrorIs(t, failed, boom)
				require.Equal(t, boom, failed.Value())
				require.Equal(t, 5, failed.Part())
				require.Contains(t, string(failed.Stack()), "parallel_test.explode", "the stack is the worker's")
			}
			assertWorks(t, p)
		})
	}
}

//go:noinline
func explode(err error) { panic(err) }

func TestPanicInHelperWaitsForOthers(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2)
	inHelper := make(chan struct{})
	returned := false
	value := raised(func() {
		var first atomic.Bool
		p.Run(2, task(func(int) {
			if first.CompareAndSwap(false, true) {
				<-inHelper // until the other part is about to panic
				for range 1000 {
					runtime.Gosched()
				}
				returned = true
				return
			}
			close(inHelper)
			panic("boom")
		}))
	})
	assert.Equal(t, "boom", value.(*parallel.Panic).Value())
	assert.NoError(t, value.(*parallel.Panic).Unwrap(), "a string is not an error")
	assert.True(t, returned, "Run returns after all running parts")
}

func TestNestedPanicIsWrappedOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2)
	value := raised(func() {
		p.Run(3, task(func(int) { p.Run(9, task(func(part int) { panic(part) })) }))
	})
	assert.Equal(t, 0, value.(*parallel.Panic).Value())
	assert.EqualError(t, value.(*parallel.Panic), "parallel: part 0 panicked: 0")
}

func TestRuntimeErrorIsUnwrapped(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2)
	var none []int
	value := raised(func() { p.Run(4, task(func(part int) { none[part]++ })) })
	var e runtime.Error
	assert.ErrorAs(t, value.(error), &e)
}

// A part that ends its goroutine must not cost the pool a worker, and Run must still return.
func TestGoexit(t *testing.T) {
	t.Parallel()
	p := newPool(t, 3)
	for range 100 {
		id := goroutine()
		var all sync.WaitGroup
		all.Add(2)
		value := raised(func() {
			p.Run(2, task(func(int) {
				all.Done()
				all.Wait() // one part in the caller, one in a helper
				if goroutine() != id {
					runtime.Goexit()
				}
			}))
		})
		failed, ok := value.(*parallel.Panic)
		require.True(t, ok, "got %v", value)
		require.ErrorContains(t, failed, "runtime.Goexit was called")
	}
	assertWorks(t, p)

	for range 100 {
		ended := make(chan struct{})
		returned := false
		go func() {
			defer close(ended)
			id := goroutine()
			p.Run(endless, task(func(int) {
				if goroutine() == id {
					runtime.Goexit()
				}
			}))
			returned = true
		}()
		<-ended
		require.False(t, returned)
	}
	assertWorks(t, p)
}

// goroutine returns the name of the calling goroutine.
func goroutine() string {
	var buf [64]byte
	return string(buf[:runtime.Stack(buf[:], false)])[:18]
}

func TestClose(t *testing.T) {
	t.Parallel()
	p := parallel.New(4)
	assertWorks(t, p)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(p.Close)
		wg.Go(func() { p.Run(100, task(func(int) {})) })
	}
	wg.Wait()
	p.Close()

	order := []int{}
	p.Run(3, task(func(part int) { order = append(order, part) }))
	assert.Equal(t, []int{0, 1, 2}, order, "a closed pool runs in the caller")
	parallel.New(1).Close()
}

// Runs are so far apart that helpers sleep between them, and jobs so short that offers are
// withdrawn.
func TestSleepingHelpers(t *testing.T) {
	t.Parallel()
	p := newPool(t, 4)
	var sum atomic.Int64
	want := int64(0)
	for round := range 3000 {
		parts := 1 + round%6
		p.Run(parts, task(func(part int) { sum.Add(int64(part) + 1) }))
		want += int64(parts * (parts + 1) / 2)
		require.Equal(t, want, sum.Load())
		for range round % 64 {
			runtime.Gosched()
		}
	}
	assertWorks(t, p)
}
