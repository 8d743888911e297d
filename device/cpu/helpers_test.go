package cpu

import (
	"os"
	goruntime "runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a backend and checks that nothing is left in it at the end of the test.
func open(t *testing.T) *Backend {
	t.Helper()
	b := New()
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

// openOn is open for a machine with these NUMA nodes and pager.
func openOn(t *testing.T, p pager, nodes ...int) *Backend {
	t.Helper()
	b := newBackend(p, func() []int { return nodes })
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

func mustAlloc(t *testing.T, b *Backend, size uint64) unsafe.Pointer {
	t.Helper()
	p, err := b.Alloc(size)
	require.NoError(t, err)
	return p
}

func mustRecord(t *testing.T, b *Backend, s device.Stream) device.Event {
	t.Helper()
	e, err := b.CreateEvent()
	require.NoError(t, err)
	require.NoError(t, b.RecordEvent(e, s))
	return e
}

func mustStream(t *testing.T, b *Backend) device.Stream {
	t.Helper()
	s, err := b.CreateStream()
	require.NoError(t, err)
	return s
}

// inPages returns length rounded up to whole pages.
func inPages(length uint64) uint64 { return roundUp(length, uint64(os.Getpagesize())) }

// onThread runs f on an OS thread of its own.
func onThread(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		f()
	})
	wg.Wait()
}

// fakePager is a heapPager that counts and fails on demand. Tests never call the pager of an arena
// concurrently.
type fakePager struct {
	heapPager
	held       map[unsafe.Pointer]uint64
	bound      []int
	acquired   int
	released   int
	acquireErr func(length uint64) error
	releaseErr error
	bindErr    error
}

func newFakePager() *fakePager { return &fakePager{held: make(map[unsafe.Pointer]uint64)} }

func (f *fakePager) acquire(length uint64) (unsafe.Pointer, error) {
	if f.acquireErr != nil {
		if err := f.acquireErr(length); err != nil {
			return nil, err
		}
	}
	p, err := f.heapPager.acquire(length)
	f.held[p] = length
	f.acquired++
	return p, err
}

func (f *fakePager) release(p unsafe.Pointer, length uint64) error {
	if f.held[p] != length {
		panic("release of memory that was not acquired")
	}
	delete(f.held, p)
	f.released++
	return f.releaseErr
}

func (f *fakePager) bind(_ unsafe.Pointer, _ uint64, node int) error {
	f.bound = append(f.bound, node)
	return f.bindErr
}
