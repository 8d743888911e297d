package opencl

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/internal/driver"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// queue is a stream: a command queue of OpenCL that runs its work in order.
type queue struct {
	device *Device
	handle uintptr // the cl_command_queue
	stream device.Stream

	mu     sync.RWMutex // read-locked by those that queue work
	closed bool

	awaited atomic.Uint64 // the last one of the device's fills that this stream waits for
	host    host          // Go functions in the stream
}

// newQueue makes a command queue.
func (d *Device) newQueue(s device.Stream) (*queue, error) {
	h, err := d.lib.Create(cl.CreateCommandQueue, d.context, d.id, cl.QueueProfilingEnable)
	if err != nil {
		return nil, d.fail(err, "make a command queue")
	}
	return &queue{device: d, handle: h, stream: s}, nil
}

func (q *queue) release() error {
	if err := q.device.lib.Call(cl.ReleaseCommandQueue, q.handle); err != nil {
		return q.device.fail(err, "release a command queue")
	}
	return nil
}

// String returns the stream's name for errors.
func (q *queue) String() string {
	if q.stream == device.DefaultStream {
		return fmt.Sprintf("the default stream of %v", q.device)
	}
	return fmt.Sprintf("stream %d of %v", q.stream, q.device)
}

// finish waits for all work.
func (q *queue) finish(doing string) error {
	err := q.device.lib.Call(cl.Finish, q.handle)
	if err != nil {
		err = q.device.fail(err, "%s: wait for %v", doing, q)
	}
	return errors.Join(err, q.host.take())
}

// use calls f, which queues work, unless the stream is closed.
func (q *queue) use(f func(*queue) error) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return fmt.Errorf("opencl: stream %d: it is already freed", q.stream)
	}
	if err := q.awaitFill(); err != nil {
		return err
	}
	return f(q)
}

// clear queues zeroing after some events; event may be nil.
func (q *queue) clear(mem uintptr, offset, size uint64, after []uintptr, event *uintptr) error {
	return q.paint(0, mem, offset, size, after, event)
}

// paint queues that each byte becomes value after some events; event may be nil.
func (q *queue) paint(value byte, mem uintptr, offset, size uint64, after []uintptr, event *uintptr) error {
	pattern := uint64(1)
	for pattern < 16 && (offset|size)&pattern == 0 {
		pattern *= 2
	}
	bytes := slices.Repeat([]byte{value}, int(pattern))
	var list uintptr
	if len(after) > 0 {
		list = uintptr(unsafe.Pointer(&after[0]))
	}
	err := q.device.lib.Call(cl.EnqueueFillBuffer, q.handle, mem, uintptr(unsafe.Pointer(&bytes[0])), uintptr(pattern), uintptr(offset), uintptr(size),
		uintptr(len(after)), list, uintptr(unsafe.Pointer(event)))
	runtime.KeepAlive(after)
	if err != nil {
		return q.device.fail(err, "fill %d bytes with %d", size, value)
	}
	return nil
}

// marker queues an event that completes when the work before it has.
func (q *queue) marker() (uintptr, error) {
	event := new(uintptr)
	if err := q.device.lib.Call(cl.EnqueueMarkerWithWaitList, q.handle, 0, 0, uintptr(unsafe.Pointer(event))); err != nil {
		return 0, q.device.fail(err, "mark a point in %v", q)
	}
	return *event, nil
}

// barrier queues that later work waits for an event.
func (q *queue) barrier(event uintptr) error {
	list := []uintptr{event}
	if err := q.device.lib.Call(cl.EnqueueMarkerWithWaitList, q.handle, 1, uintptr(unsafe.Pointer(&list[0])), 0); err != nil {
		return q.device.fail(err, "make %v wait", q)
	}
	return nil
}

// flush hands queued work to the device.
func (q *queue) flush() error {
	if err := q.device.lib.Call(cl.Flush, q.handle); err != nil {
		return q.device.fail(err, "flush %v", q)
	}
	return nil
}

// releaseEvents gives back events that nobody waits for any longer.
func (q *queue) releaseEvents(events []uintptr) {
	for _, e := range events {
		_ = q.device.lib.Call(cl.ReleaseEvent, e)
	}
}

// fills orders the zeroing of blocks and the copies to the device, which the default stream makes,
// before the work of all other streams.
type fills struct {
	mu      sync.Mutex
	streams int // besides the default stream
	event   uintptr
	serial  atomic.Uint64 // of event
}

// first queues work in the default stream before the work that any stream is given later. It calls
// enqueue with a place for the event of the work, nil when nobody wants it.
func (f *fills) first(q *queue, enqueue func(event *uintptr) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == 0 {
		return q.measured(enqueue)
	}
	event := new(uintptr)
	if err := enqueue(event); err != nil {
		return err
	}
	f.replaceLocked(q, *event)
	return q.flush()
}

func (f *fills) replaceLocked(q *queue, event uintptr) {
	if f.event != 0 {
		q.releaseEvents([]uintptr{f.event})
	}
	f.event = event
	f.serial.Add(1)
}

// awaitFill makes a stream wait for the fills that have been queued.
func (q *queue) awaitFill() error {
	f := &q.device.fills
	if q.stream == device.DefaultStream || q.awaited.Load() == f.serial.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.event != 0 {
		if err := q.barrier(f.event); err != nil {
			return err
		}
	}
	q.awaited.Store(f.serial.Load())
	return nil
}

// join counts a new stream and makes it wait for the fills so far.
func (f *fills) join(d *Device) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	event, err := d.queue.marker()
	if err != nil {
		return err
	}
	f.streams++
	f.replaceLocked(d.queue, event)
	return d.queue.flush()
}

func (f *fills) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams--
}

// close releases the event.
func (f *fills) close(q *queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.event != 0 {
		q.releaseEvents([]uintptr{f.event})
		f.event = 0
	}
}

// handles holds the events and streams of a Backend.
type handles struct {
	mu      sync.Mutex
	events  driver.Table[device.Event, *event]
	streams driver.Table[device.Stream, *queue]
}

func newHandles() *handles {
	return &handles{
		events:  driver.NewTable[device.Event, *event]("opencl", "event", "CreateEvent", 1),
		streams: driver.NewTable[device.Stream, *queue]("opencl", "stream", "CreateStream", 2),
	}
}

// stream returns a stream that is not a default stream.
func (h *handles) stream(op string, s device.Stream) (*queue, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams.Get(op, s)
}

// mark returns events for the work that is in a device's streams now, the default stream left out.
func (h *handles) mark(d *Device) ([]uintptr, error) {
	h.mu.Lock()
	if len(h.streams.Live) == 0 {
		h.mu.Unlock()
		return nil, nil
	}
	queues := slices.Collect(maps.Values(h.streams.Live))
	h.mu.Unlock()
	var events []uintptr
	for _, q := range queues {
		if q.device != d {
			continue
		}
		event, err := q.markUnlessClosed()
		if err != nil {
			return nil, err
		}
		if event != 0 {
			events = append(events, event)
		}
	}
	return events, nil
}

// markUnlessClosed returns 0 for a stream that is being freed.
func (q *queue) markUnlessClosed() (uintptr, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return 0, nil
	}
	event, err := q.marker()
	if err != nil {
		return 0, err
	}
	return event, q.flush()
}

// close frees all streams and events.
func (h *handles) close() error {
	h.mu.Lock()
	queues := slices.Collect(maps.Values(h.streams.Live))
	events := slices.Collect(maps.Values(h.events.Live))
	clear(h.streams.Live)
	clear(h.events.Live)
	h.mu.Unlock()
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.end())
	}
	for _, e := range events {
		e.set(0, nil)
	}
	return errors.Join(errs...)
}

// end refuses further work, waits for the rest and releases the queue.
func (q *queue) end() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return fmt.Errorf("opencl: free stream %d: it is already freed", q.stream)
	}
	q.closed = true
	q.mu.Unlock()
	err := q.finish("free")
	q.device.fills.leave()
	return errors.Join(err, q.release())
}

// CreateStream returns a new empty stream on the current device.
func (b *Backend) CreateStream() (device.Stream, error) {
	if err := b.check("create stream"); err != nil {
		return 0, err
	}
	d, err := b.current()
	if err != nil {
		return 0, err
	}
	if err := d.start(); err != nil {
		return 0, err
	}
	q, err := d.newQueue(0)
	if err != nil {
		return 0, err
	}
	if err := d.fills.join(d); err != nil {
		return 0, errors.Join(err, q.release())
	}
	h := b.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams.Add(func(s device.Stream) *queue {
		q.stream = s
		return q
	})
}

// FreeStream waits for the work in the stream, releases the stream, and returns the failures of
// that work that no SyncEvent has returned. Work that is submitted while it waits is refused. The
// default stream cannot be freed.
func (b *Backend) FreeStream(s device.Stream) error {
	if s == device.DefaultStream {
		return errors.New("opencl: free stream 0: the default stream cannot be freed")
	}
	if err := b.check("free stream"); err != nil {
		return err
	}
	q, err := b.handles.stream("free", s)
	if err != nil {
		return err
	}
	err = errors.Join(q.device.scratches.drop(s), q.end())
	h := b.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams.Live, s)
	return err
}

// Wait returns when the work that was queued in a stream has finished.
func (d *Device) Wait(s device.Stream) error {
	return d.backend.enqueue(d, s, func(q *queue) error { return q.finish("wait") })
}

// enqueue calls f with a stream; the zero Stream is the default stream of d.
func (b *Backend) enqueue(d *Device, s device.Stream, f func(*queue) error) error {
	q, err := b.queue("use", d, s)
	if err != nil {
		return err
	}
	return q.use(f)
}

// queue returns a stream of a device; the zero Stream is its default stream.
func (b *Backend) queue(op string, d *Device, s device.Stream) (*queue, error) {
	if err := b.check(op, "stream"); err != nil {
		return nil, err
	}
	if s == device.DefaultStream {
		if err := d.start(); err != nil {
			return nil, err
		}
		return d.queue, nil
	}
	q, err := b.handles.stream(op, s)
	if err == nil && d != nil && q.device != d {
		err = fmt.Errorf("opencl: %s %v: the memory is on %v", op, q, d)
	}
	return q, err
}

// queueOf returns a stream of any device; the zero Stream is the default stream of the current
// device.
func (b *Backend) queueOf(op string, s device.Stream) (*queue, error) {
	if s != device.DefaultStream {
		return b.queue(op, nil, s)
	}
	d, err := b.current()
	if err != nil {
		return nil, err
	}
	return b.queue(op, d, s)
}
