package opencl

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// host runs the Go functions of a stream. The stream waits for an event of the user's at the place
// of each function.
type host struct {
	mu       sync.Mutex
	tasks    []task
	running  bool
	failures []error
}

// task is a Go function in a stream.
type task struct {
	run   func()
	ready uintptr // completes when the work before the function has
	done  uintptr // completed after the function
}

// Submit queues f after the work that is in the stream now and returns. When f panics, the next
// SyncEvent for the stream returns an error, and the stream continues with the work after f. f must
// not wait for its own stream.
func (b *Backend) Submit(s device.Stream, f func()) error {
	if f == nil {
		return fmt.Errorf("opencl: submit to stream %d: the function is nil", s)
	}
	q, err := b.queueOf("submit to", s)
	if err != nil {
		return err
	}
	return q.use(func(q *queue) error { return q.submit(f) })
}

func (q *queue) submit(f func()) (err error) {
	h, lib := &q.host, q.device.lib
	h.mu.Lock()
	defer h.mu.Unlock()
	t := task{run: f}
	if t.ready, err = q.marker(); err != nil {
		return err
	}
	if t.done, err = lib.Create(cl.CreateUserEvent, q.device.context); err != nil {
		q.releaseEvents([]uintptr{t.ready})
		return q.device.fail(err, "make an event for a function in %v", q)
	}
	if err = errors.Join(q.barrier(t.done), q.flush()); err != nil {
		q.complete(t)
		return err
	}
	h.tasks = append(h.tasks, t)
	if !h.running {
		h.running = true
		go q.drain()
	}
	return nil
}

// complete lets the stream go on after a function.
func (q *queue) complete(t task) {
	_ = q.device.lib.Call(cl.SetUserEventStatus, t.done, 0)
	q.releaseEvents([]uintptr{t.ready, t.done})
}

// drain runs functions until there are none.
func (q *queue) drain() {
	empty := false
	defer func() {
		if !empty {
			go q.drain() // a function ended this goroutine with runtime.Goexit
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	threads := &q.device.backend.threads
	defer threads.Reset()
	for {
		t, ok := q.host.pop()
		if !ok {
			empty = true
			return
		}
		threads.Set(q.device.index)
		q.run(t)
	}
}

// pop returns the next function. When there is none the stream is no longer running functions.
func (h *host) pop() (task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.tasks) == 0 {
		h.tasks, h.running = nil, false
		return task{}, false
	}
	t := h.tasks[0]
	h.tasks = h.tasks[1:]
	return t, true
}

// run waits for the work before a function, calls it, and lets the stream go on.
func (q *queue) run(t task) {
	returned := false
	defer func() {
		if !returned {
			err := errors.New("runtime.Goexit was called")
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
			q.host.add(fmt.Errorf("opencl: a function in %v: %w", q, err))
		}
		q.complete(t)
	}()
	if err := q.device.wait(t.ready); err != nil {
		q.host.add(q.device.fail(err, "wait for the work before a function in %v", q))
	}
	t.run()
	returned = true
}

// wait waits for an event.
func (d *Device) wait(event uintptr) error {
	list := []uintptr{event}
	return d.lib.Call(cl.WaitForEvents, 1, uintptr(unsafe.Pointer(&list[0])))
}

// maxFailures bounds the failures that a stream keeps until they are asked for.
const maxFailures = 16

func (h *host) add(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failures) < maxFailures {
		h.failures = append(h.failures, err)
	}
}

// take returns the failures so far as one error and forgets them.
func (h *host) take() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	failures := h.failures
	h.failures = nil
	return errors.Join(failures...)
}
