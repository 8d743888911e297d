package cpu

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/internal/driver"
)

// sysNodes is where Linux describes the NUMA nodes.
const sysNodes = "/sys/devices/system/node"

// Backend is the CPU device backend. Use New to make one; it is safe for concurrent use.
type Backend struct {
	nodes   func() []int // node numbers by device index, read once
	threads driver.Devices
	arena   *arena
	handles *handles
	drained chan struct{} // closed when Close has waited for the streams
}

var (
	_ device.Backend     = (*Backend)(nil)
	_ device.StreamQueue = (*Backend)(nil)
	_ device.Numbered    = (*Backend)(nil)
)

// New returns a CPU backend. It does no I/O and starts no goroutine; Close releases everything that
// the backend holds by then.
func New() *Backend {
	return newBackend(newSystemPager(), func() []int { return readNodes(os.DirFS(sysNodes)) })
}

func newBackend(p pager, nodes func() []int) *Backend {
	return &Backend{
		nodes:   sync.OnceValue(nodes),
		arena:   newArena(p),
		handles: newHandles(),
		drained: make(chan struct{}),
	}
}

// Name returns "CPU".
func (b *Backend) Name() string { return "CPU" }

// Usable returns nil until the backend is closed.
func (b *Backend) Usable() error {
	if b.handles.isClosed() {
		return fmt.Errorf("%w: make another with cpu.New", device.ErrClosed)
	}
	return nil
}

// Close waits for the work in all streams and releases streams, events and unused memory. It
// returns the failures of stream functions that no SyncEvent has returned, and an error when blocks
// are still allocated. Such blocks stay valid and may still be freed; every other use of the
// backend is an error afterwards.
//
// Close may be called again to release blocks that were freed since.
func (b *Backend) Close() error {
	streams, first := b.handles.close()
	if !first {
		<-b.drained
		return b.arena.close()
	}
	var errs []error
	for _, s := range streams {
		s.close()
		s.wait()
		errs = append(errs, s.failures.takeAll())
	}
	close(b.drained)
	errs = append(errs, b.arena.close())
	return errors.Join(errs...)
}
