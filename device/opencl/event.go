package opencl

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// event is a point in a stream that can be moved.
type event struct {
	mu     sync.Mutex
	marker uintptr // the cl_event, 0 until recorded
	queue  *queue
}

// set moves the event and releases the earlier point.
func (e *event) set(marker uintptr, q *queue) {
	e.mu.Lock()
	old, from := e.marker, e.queue
	e.marker, e.queue = marker, q
	e.mu.Unlock()
	if old != 0 {
		from.releaseEvents([]uintptr{old})
	}
}

// hold returns the point, which the caller releases.
func (e *event) hold() (uintptr, *queue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.marker == 0 {
		return 0, nil, nil
	}
	if err := e.queue.device.lib.Call(cl.RetainEvent, e.marker); err != nil {
		return 0, nil, e.queue.device.fail(err, "hold an event")
	}
	return e.marker, e.queue, nil
}

// CreateEvent returns a new event that has not been recorded. A handle is never used for another
// event.
func (b *Backend) CreateEvent() (device.Event, error) {
	if err := b.check("create event"); err != nil {
		return 0, err
	}
	h := b.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events.Add(func(device.Event) *event { return new(event) })
}

// FreeEvent releases an event. A SyncEvent that is waiting for it goes on waiting. Freeing an event
// twice is an error.
func (b *Backend) FreeEvent(e device.Event) error {
	found, err := b.event("free", e)
	if err != nil {
		return err
	}
	h := b.handles
	h.mu.Lock()
	delete(h.events.Live, e)
	h.mu.Unlock()
	found.set(0, nil)
	return nil
}

// RecordEvent places the event after the work that is in the stream now. Recording again moves the
// event; a SyncEvent that is already waiting keeps waiting for the earlier point.
func (b *Backend) RecordEvent(e device.Event, s device.Stream) error {
	found, err := b.event("record", e)
	if err != nil {
		return err
	}
	q, err := b.queueOf("record in", s)
	if err != nil {
		return err
	}
	return q.use(func(q *queue) error {
		marker, err := q.marker()
		if err != nil {
			return err
		}
		found.set(marker, q)
		return q.flush()
	})
}

// SyncEvent waits until the event has completed. It returns an error when work before the event
// failed; failures of Go functions in the stream are returned once. An event that was never
// recorded is an error.
func (b *Backend) SyncEvent(e device.Event) error {
	found, err := b.event("sync", e)
	if err != nil {
		return err
	}
	marker, q, err := found.hold()
	if err != nil {
		return err
	}
	if marker == 0 {
		return fmt.Errorf("opencl: sync event %d: it was never recorded; call RecordEvent first", e)
	}
	defer q.releaseEvents([]uintptr{marker})
	if err := q.device.wait(marker); err != nil {
		return q.device.fail(err, "wait for an event in %v", q)
	}
	return q.host.take()
}

// Elapsed returns the time on the device between two events, which have completed.
func (b *Backend) Elapsed(from, to device.Event) (time.Duration, error) {
	start, err := b.completed(from)
	if err != nil {
		return 0, err
	}
	end, err := b.completed(to)
	return end - start, err
}

// completed returns when an event completed, on the clock of its device.
func (b *Backend) completed(e device.Event) (time.Duration, error) {
	found, err := b.event("time", e)
	if err != nil {
		return 0, err
	}
	marker, q, err := found.hold()
	if err != nil {
		return 0, err
	}
	if marker == 0 {
		return 0, fmt.Errorf("opencl: time of event %d: it was never recorded; call RecordEvent first", e)
	}
	defer q.releaseEvents([]uintptr{marker})
	value, err := q.device.lib.Info(cl.GetEventProfilingInfo, marker, cl.ProfilingCommandEnd)
	if err != nil {
		return 0, q.device.fail(err, "time of event %d, which must have completed", e)
	}
	return time.Duration(binary.NativeEndian.Uint64(value)), nil
}

func (b *Backend) event(op string, e device.Event) (*event, error) {
	if err := b.check(op, "event"); err != nil {
		return nil, err
	}
	h := b.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events.Get(op, e)
}
