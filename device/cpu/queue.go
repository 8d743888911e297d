package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/internal/driver"
)

// stream is a queue of functions. A goroutine runs them in order; it exists only while there are
// any.
type stream struct {
	handle   device.Stream
	device   int
	threads  *driver.Devices // nil when there is only one device
	failures failures

	mu      sync.Mutex
	queue   []task
	running bool
	closed  bool
	end     uint64 // position after the last function that was submitted
}

// task is a function to run or a mark to reach.
type task struct {
	work     func()
	position uint64
	mark     *mark
}

// mark is a point in a stream.
type mark struct {
	stream   *stream
	position uint64
	reached  chan struct{} // closed once the work before the mark is done
}

// submit queues work, unless the stream is closed.
func (s *stream) submit(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.pushLocked(task{work: work, position: s.end})
	s.end++
	return true
}

// record queues a mark, unless the stream is closed.
func (s *stream) record() (*mark, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	return s.markLocked(), true
}

// close refuses further work. It reports whether the stream was open.
func (s *stream) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasOpen := !s.closed
	s.closed = true
	return wasOpen
}

// wait returns once the work that is in the stream now is done.
func (s *stream) wait() {
	s.mu.Lock()
	m := s.markLocked()
	s.mu.Unlock()
	<-m.reached
}

func (s *stream) markLocked() *mark {
	m := &mark{stream: s, position: s.end, reached: make(chan struct{})}
	if s.running {
		s.pushLocked(task{mark: m})
	} else {
		close(m.reached)
	}
	return m
}

func (s *stream) pushLocked(t task) {
	s.queue = append(s.queue, t)
	if !s.running {
		s.running = true
		go s.drain()
	}
}

// drain runs tasks until there are none.
func (s *stream) drain() {
	empty := false
	defer func() {
		if !empty {
			go s.drain() // the work ended this goroutine with runtime.Goexit
		}
	}()
	if s.threads != nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer s.threads.Reset()
	}
	for {
		t, ok := s.pop()
		if !ok {
			empty = true
			return
		}
		if t.mark != nil {
			close(t.mark.reached)
			continue
		}
		if s.threads != nil {
			s.threads.Set(s.device)
		}
		s.run(t)
	}
}

// pop returns the next task. When there is none the stream is no longer running.
func (s *stream) pop() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue = nil
		s.running = false
		return task{}, false
	}
	t := s.queue[0]
	s.queue[0] = task{}
	s.queue = s.queue[1:]
	return t, true
}

// run calls the work and records a failure unless it returns.
func (s *stream) run(t task) {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errGoexit
		switch v := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("panic: %w", v)
		default:
			err = fmt.Errorf("panic: %v", v)
		}
		s.failures.add(t.position, &WorkError{Stream: s.handle, Device: s.device, Err: err, Stack: debug.Stack()})
	}()
	t.work()
	returned = true
}
