package cpu

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
)

// CreateStream returns a new empty stream on the current device.
func (b *Backend) CreateStream() (device.Stream, error) {
	index := b.current()
	h := b.handles
	if err := h.lock("create", "stream"); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	return h.streams.Add(func(handle device.Stream) *stream { return b.newStream(handle, index) })
}

// FreeStream waits for the work in the stream, releases the stream, and returns the failures of
// that work that no SyncEvent has returned. Work that is submitted while it waits is refused. The
// default stream cannot be freed.
func (b *Backend) FreeStream(s device.Stream) error {
	if s == device.DefaultStream {
		return errors.New("cpu: free stream 0: the default stream cannot be freed")
	}
	h := b.handles
	found, err := b.stream("free", s)
	if err != nil {
		return err
	}
	if !found.close() {
		return b.refusal("free", found)
	}
	// Close must find the stream as long as there is work in it.
	found.wait()
	h.mu.Lock()
	delete(h.streams.Live, s)
	h.mu.Unlock()
	return found.failures.takeAll()
}

// Submit queues f after the work that is in the stream now and returns. When f panics, the next
// SyncEvent for a later point returns a WorkError, and the stream continues with the work after f.
// f must not wait for its own stream.
func (b *Backend) Submit(s device.Stream, f func()) error {
	if f == nil {
		return fmt.Errorf("cpu: submit to stream %d: the function is nil", s)
	}
	found, err := b.stream("submit to", s)
	if err != nil {
		return err
	}
	if !found.submit(f) {
		return b.refusal("submit to", found)
	}
	return nil
}

// stream returns the stream of a handle, which may be the default stream.
func (b *Backend) stream(op string, s device.Stream) (*stream, error) {
	index := b.current()
	h := b.handles
	if err := h.lock(op, "stream"); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	if s != device.DefaultStream {
		return h.streams.Get(op, s)
	}
	found := h.defaults[index]
	if found == nil {
		found = b.newStream(s, index)
		h.defaults[index] = found
	}
	return found, nil
}

// refusal returns why a stream that was open a moment ago is closed.
func (b *Backend) refusal(op string, s *stream) error {
	if b.handles.isClosed() {
		return fmt.Errorf("%w: %s stream", device.ErrClosed, op)
	}
	return fmt.Errorf("cpu: %s stream %d: it is already freed", op, s.handle)
}

func (b *Backend) newStream(handle device.Stream, index int) *stream {
	s := &stream{handle: handle, device: index}
	if len(b.nodes()) > 1 {
		s.threads = &b.threads
	}
	return s
}

func compareStreams(a, b *stream) int {
	return cmp.Or(cmp.Compare(a.handle, b.handle), cmp.Compare(a.device, b.device))
}
