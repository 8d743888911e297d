package cpu

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/primus-fl/primus/device"
)

// WorkError reports a function in a stream that panicked or ended its goroutine.
type WorkError struct {
	Stream device.Stream // the stream, which may be the default stream
	Device int           // the device of the stream
	Err    error         // the panic; wraps the panic's value if that is an error
	Stack  []byte        // the goroutine's stack at the panic
}

// Error returns the stream and the panic in one line; Stack is left out.
func (e *WorkError) Error() string {
	return fmt.Sprintf("cpu: work in %s: %v", streamName(e.Stream, e.Device), e.Err)
}

// Unwrap returns Err.
func (e *WorkError) Unwrap() error { return e.Err }

func streamName(s device.Stream, index int) string {
	if s == device.DefaultStream {
		return fmt.Sprintf("the default stream of device %d", index)
	}
	return fmt.Sprintf("stream %d", s)
}

// errGoexit is the failure of a function that ended its goroutine.
var errGoexit = errors.New("runtime.Goexit was called")

// maxFailures bounds the failures that a stream keeps until they are asked for.
const maxFailures = 16

// failures holds what went wrong in a stream until a caller takes it. The first failures are kept
// and further ones are counted.
type failures struct {
	mu           sync.Mutex
	kept         []failure
	dropped      int
	firstDropped uint64
}

type failure struct {
	position uint64
	err      *WorkError
}

// add records that the function at a position of the stream failed. Positions ascend.
func (f *failures) add(position uint64, err *WorkError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kept) < maxFailures {
		f.kept = append(f.kept, failure{position, err})
		return
	}
	if f.dropped == 0 {
		f.firstDropped = position
	}
	f.dropped++
}

// take returns the failures before a position as one error and forgets them.
func (f *failures) take(before uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for len(f.kept) > 0 && f.kept[0].position < before {
		errs = append(errs, f.kept[0].err)
		f.kept = f.kept[1:]
	}
	if f.dropped > 0 && f.firstDropped < before {
		errs = append(errs, fmt.Errorf("cpu: %d further failures in the same stream", f.dropped))
		f.dropped = 0
	}
	return errors.Join(errs...)
}

func (f *failures) takeAll() error { return f.take(math.MaxUint64) }
