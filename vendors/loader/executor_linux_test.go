package loader_test

import (
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/vendors/loader"
)

func TestExecutorKeepsItsThread(t *testing.T) {
	e := loader.StartExecutor(1)
	defer e.Close()
	var mu sync.Mutex
	threads := map[int]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				assert.NoError(t, e.Do(func() {
					mu.Lock()
					defer mu.Unlock()
					threads[syscall.Gettid()] = true
				}))
			}
		})
	}
	wg.Wait()
	assert.Len(t, threads, 1)
}
