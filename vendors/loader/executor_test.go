package loader_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/vendors/loader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExecutorBoundsConcurrency(t *testing.T) {
	for _, threads := range []int{-1, 1, 3} {
		e := loader.StartExecutor(threads)
		bound := int64(max(threads, 1))
		var mu sync.Mutex
		var running, most, calls int64
		var wg sync.WaitGroup
		// Each call waits until the bound is reached once. A bound that is too small shows as a
		// hang, and one that is too large shows in the count.
		full := make(chan struct{})
		for range 16 {
			wg.Go(func() {
				for range 50 {
					assert.NoError(t, e.Do(func() {
						mu.Lock()
						running++
						if running > most {
							if most = running; most == bound {
								close(full)
							}
						}
						mu.Unlock()
						<-full
						mu.Lock()
						running--
						calls++
						mu.Unlock()
					}))
				}
			})
		}
		wg.Wait()
		e.Close()
		assert.Equal(t, bound, most)
		assert.EqualValues(t, 16*50, calls)
	}
}

func TestExecutorRaisesPanicInCaller(t *testing.T) {
	e := loader.StartExecutor(1)
	defer e.Close()
	for _, cause := range []any{"text", assert.AnError} {
		assert.PanicsWithValue(t, cause, func() { _ = e.Do(func() { panic(cause) }) })
	}
	ran := false
	require.NoError(t, e.Do(func() { ran = true }))
	assert.True(t, ran, "a panic does not cost the executor a thread")
}

func TestExecutorClose(t *testing.T) {
	e := loader.StartExecutor(2)
	started, finish := make(chan struct{}), make(chan struct{})
	finished := false
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, e.Do(func() {
			close(started)
			<-finish
			finished = true
		}))
	})
	<-started
	wg.Go(func() { close(finish) })
	e.Close()
	assert.True(t, finished, "Close waits for running functions")
	e.Close()
	assert.ErrorIs(t, e.Do(func() { t.Error("ran after Close") }), loader.ErrClosed)
	wg.Wait()
}

func TestExecutorDoDoesNotAllocate(t *testing.T) {
	e := loader.StartExecutor(1)
	defer e.Close()
	f := func() {}
	assert.Less(t, testing.AllocsPerRun(200, func() { _ = e.Do(f) }), 1.0)
}

func BenchmarkExecutorDo(b *testing.B) {
	e := loader.StartExecutor(1)
	defer e.Close()
	f := func() {}
	b.ReportAllocs()
	for b.Loop() {
		_ = e.Do(f)
	}
}
