package opencl

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

const (
	// maxStaged is the largest copy to the device that goes through memory of the backend, so that
	// its caller does not wait.
	maxStaged = 256 << 10

	// maxStages bounds the copies under way. Their callers wait for those beyond it.
	maxStages = 64
)

// staging keeps the host memory of copies until they have been made.
type staging struct {
	mu   sync.Mutex
	list []*staged // in the order in which they were queued
}

// staged is a copy between memory of the backend and the device.
type staged struct {
	memory []byte
	event  uintptr // 0 once it is known that the copy has ended
	err    error   // why it failed
}

// room reports whether another copy may be under way. It forgets those that have ended, and returns
// why one failed.
func (s *staging) room(d *Device) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.list) > 0 {
		c := s.list[0]
		status, err := d.lib.Info(cl.GetEventInfo, c.event, cl.EventCommandExecutionStatus)
		if err != nil {
			return false, d.fail(err, "ask for the state of a copy")
		}
		code := cl.Code(binary.NativeEndian.Uint32(status))
		if code > 0 {
			break
		}
		s.list = s.list[1:]
		d.queue.releaseEvents([]uintptr{c.event})
		c.event = 0
		if code < 0 {
			c.err = d.fail(&cl.Error{Call: "a queued copy", Code: code}, "copy %d bytes", len(c.memory))
			return false, c.err
		}
	}
	return len(s.list) < maxStages, nil
}

// queue queues a copy, and keeps its memory until the copy has ended. event is where somebody else
// wants the event, nil if nobody does.
func (s *staging) queue(q *queue, c *staged, event *uintptr, fn cl.Function, at Buffer) error {
	own := event
	if own == nil {
		own = new(uintptr)
	}
	if err := q.copy(fn, at, c.memory, false, own); err != nil {
		return err
	}
	if event != nil {
		if err := q.device.lib.Call(cl.RetainEvent, *own); err != nil {
			return errors.Join(err, q.device.wait(*own)) // the copy uses the memory until then
		}
	}
	c.event = *own
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, c)
	return nil
}

// wait waits for a copy.
func (s *staging) wait(d *Device, c *staged) error {
	s.mu.Lock()
	event, err := c.event, c.err
	if event != 0 {
		err = d.lib.Call(cl.RetainEvent, event)
	}
	s.mu.Unlock()
	if event == 0 || err != nil {
		return err
	}
	defer d.queue.releaseEvents([]uintptr{event})
	return d.wait(event)
}

// close forgets all copies, which have ended.
func (s *staging) close(d *Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.list {
		d.queue.releaseEvents([]uintptr{c.event})
		c.event = 0
	}
	s.list = nil
}

// copyInLater queues a copy of a copy of src in the default stream.
func (b *Backend) copyInLater(dst unsafe.Pointer, src []byte) error {
	const verb = "copy to"
	if len(src) == 0 {
		return b.check(verb)
	}
	to, err := b.within(verb, dst, uint64(len(src)))
	if err != nil {
		return err
	}
	d := to.Device
	if room, err := d.staging.room(d); err != nil {
		return err
	} else if !room {
		return b.transfer(verb, cl.EnqueueWriteBuffer, dst, src, device.DefaultStream)
	}
	c := &staged{memory: slices.Clone(src)}
	return b.enqueue(d, device.DefaultStream, func(q *queue) error {
		err := d.fills.first(q, func(event *uintptr) error { return d.staging.queue(q, c, event, cl.EnqueueWriteBuffer, to) })
		if err != nil {
			return d.fail(err, "%s %#x, %d bytes", verb, uintptr(dst), len(src))
		}
		return nil
	})
}

// ReadLater queues a copy of size bytes from the device after the work that is in the stream now.
// The function that it returns waits for the copy and returns it; work that the stream is given
// later does not change it. It need not be called. When too many copies are under way, ReadLater
// waits.
func (b *Backend) ReadLater(src unsafe.Pointer, size uint64, s device.Stream) (wait func() ([]byte, error), err error) {
	const verb = "copy from"
	from, err := b.within(verb, src, size)
	if err != nil {
		return nil, err
	}
	d, c := from.Device, &staged{memory: make([]byte, size)}
	room, err := d.staging.room(d)
	if err == nil && !room {
		err = b.transfer(verb, cl.EnqueueReadBuffer, src, c.memory, s)
	} else if err == nil {
		err = b.enqueue(d, s, func(q *queue) error {
			err := q.measured(func(event *uintptr) error { return d.staging.queue(q, c, event, cl.EnqueueReadBuffer, from) })
			if err != nil {
				return d.fail(err, "%s %#x, %d bytes", verb, uintptr(src), size)
			}
			return q.flush()
		})
	}
	if err != nil {
		return nil, err
	}
	return func() ([]byte, error) {
		if err := d.staging.wait(d, c); err != nil {
			return nil, d.fail(err, "%s %#x, %d bytes", verb, uintptr(src), size)
		}
		return c.memory, nil
	}, nil
}

var _ device.LateReader = (*Backend)(nil)
