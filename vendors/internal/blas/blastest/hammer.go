package blastest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
)

// Hammer calls gemm 2,000 times from 16 goroutines at once, with products of at least this size,
// and compares the last result of each. It checks that neither goroutines nor, where the system
// reports them, OS threads pile up: the calls may add no more threads than the CPUs and a few of
// the Go runtime to those after a first call.
func Hammer(t *testing.T, gemm Gemm, minSize int) {
	const goroutines, callsEach, runtimeThreads = 16, 125, 4
	t.Helper()
	x := opregistry.NewExec(nil, 0)
	problems := make([]*problem, goroutines)
	for i := range problems {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for problems[i] == nil || problems[i].args.Accumulate {
			problems[i] = newProblem(t, r, minSize)
		}
	}
	require.NoError(t, gemm(x, problems[0].args))
	routines, threads := runtime.NumGoroutine(), osThreads(t)

	start := make(chan struct{})
	failed := make(chan error, goroutines)
	var wg sync.WaitGroup
	for _, p := range problems {
		wg.Go(func() {
			<-start
			for range callsEach {
				if err := gemm(x, p.args); err != nil {
					failed <- fmt.Errorf("%v: %w", p, err)
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	for _, p := range problems {
		p.compare(t)
	}
	if got := runtime.NumGoroutine(); got > routines {
		t.Errorf("got %d goroutines, want the %d from before", got, routines)
	}
	if got, want := osThreads(t), threads+runtime.NumCPU()+runtimeThreads; got > want {
		t.Errorf("got %d OS threads, want at most %d", got, want)
	}
}

// osThreads counts the threads of the process; 0 where the system does not report them.
func osThreads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Logf("threads are not counted: %v", err)
		return 0
	}
	return len(tasks)
}
