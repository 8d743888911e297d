package cpu

import (
	"fmt"
	"sync"

	"github.com/primus-fl/primus/device"
)

// event is a point in a stream that can be moved.
type event struct {
	freed chan struct{} // closed when the event is freed

	mu   sync.Mutex
	mark *mark // nil until recorded
}

// CreateEvent returns a new event that has not been recorded. A handle is never used for another
// event.
func (b *Backend) CreateEvent() (device.Event, error) {
	h := b.handles
	if err := h.lock("create", "event"); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	return h.events.Add(func(device.Event) *event { return &event{freed: make(chan struct{})} })
}

// FreeEvent releases an event. A SyncEvent that is waiting for it returns an error. Freeing an
// event twice is an error.
func (b *Backend) FreeEvent(e device.Event) error {
	h := b.handles
	if err := h.lock("free", "event"); err != nil {
		return err
	}
	defer h.mu.Unlock()
	found, err := h.events.Get("free", e)
	if err != nil {
		return err
	}
	delete(h.events.Live, e)
	close(found.freed)
	return nil
}

// RecordEvent places the event after the work that is in the stream now. Recording again moves the
// event; a SyncEvent that is already waiting keeps waiting for the earlier point.
func (b *Backend) RecordEvent(e device.Event, s device.Stream) error {
	found, err := b.event("record", e)
	if err != nil {
		return err
	}
	in, err := b.stream("record in", s)
	if err != nil {
		return err
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	m, ok := in.record()
	if !ok {
		return b.refusal("record in", in)
	}
	found.mark = m
	return nil
}

// SyncEvent waits until the event has completed. It returns a WorkError for each function before
// the event that panicked, unless an earlier call has returned it. An event that was never recorded
// is an error, and so is one that is freed during the wait.
func (b *Backend) SyncEvent(e device.Event) error {
	found, err := b.event("sync", e)
	if err != nil {
		return err
	}
	found.mu.Lock()
	m := found.mark
	found.mu.Unlock()
	if m == nil {
		return fmt.Errorf("cpu: sync event %d: it was never recorded; call RecordEvent first", e)
	}
	select {
	case <-m.reached:
	case <-found.freed:
		return fmt.Errorf("cpu: sync event %d: it was freed during the wait", e)
	}
	return m.stream.failures.take(m.position)
}

func (b *Backend) event(op string, e device.Event) (*event, error) {
	h := b.handles
	if err := h.lock(op, "event"); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	return h.events.Get(op, e)
}
