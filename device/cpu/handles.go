package cpu

import (
	"fmt"
	"slices"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/internal/driver"
)

// handles holds the events and streams of a Backend until it is closed.
type handles struct {
	mu       sync.Mutex
	closed   bool
	events   driver.Table[device.Event, *event]
	streams  driver.Table[device.Stream, *stream]
	defaults map[int]*stream // by device
}

func newHandles() *handles {
	return &handles{
		events:   driver.NewTable[device.Event, *event]("cpu", "event", "CreateEvent", 1),
		streams:  driver.NewTable[device.Stream, *stream]("cpu", "stream", "CreateStream", 2),
		defaults: make(map[int]*stream),
	}
}

func (h *handles) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// lock locks h unless it is closed. op and kind are the verb and the object of the error.
func (h *handles) lock(op, kind string) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fmt.Errorf("%w: %s %s", device.ErrClosed, op, kind)
	}
	return nil
}

// close makes lock fail from now on and returns all streams. It reports whether
// this is the first call.
func (h *handles) close() (streams []*stream, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = !h.closed
	h.closed = true
	for _, s := range h.streams.Live {
		streams = append(streams, s)
	}
	for _, s := range h.defaults {
		streams = append(streams, s)
	}
	clear(h.events.Live)
	clear(h.streams.Live)
	clear(h.defaults)
	slices.SortFunc(streams, compareStreams)
	return streams, first
}
