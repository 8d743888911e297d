package opstest

import (
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// scattered is a Pool that starts all parts of a task at once, last part first.
type scattered struct{}

// scatteredWorkers is prime, so that splits by worker come out uneven.
const scatteredWorkers = 5

func (scattered) Workers() int { return scatteredWorkers }

func (scattered) Run(parts int, t opregistry.Task) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		cause any
	)
	for i := parts - 1; i >= 0; i-- {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					defer mu.Unlock()
					cause = p
				}
			}()
			t.Do(i)
		})
	}
	wg.Wait()
	if cause != nil {
		panic(cause)
	}
}

var _ opregistry.Pool = scattered{}
