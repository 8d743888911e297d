package mpi

import (
	"sync/atomic"
	"time"
)

// watch reports a call of the library that takes too long. It belongs to the thread that calls.
type watch struct {
	limit    *atomic.Int64 // nanoseconds, 0 for no limit
	timer    *time.Timer
	function atomic.Pointer[string] // the call that goes on
}

// newWatch returns a watch that calls hangs, on a goroutine of its own, with the name of a function
// that has not returned in time.
func newWatch(limit *atomic.Int64, hangs func(function string)) *watch {
	w := &watch{limit: limit}
	w.timer = time.AfterFunc(time.Hour, func() {
		if function := w.function.Load(); function != nil {
			hangs(*function)
		}
	})
	w.timer.Stop()
	return w
}

// begin starts the time of a call.
func (w *watch) begin(function string) {
	if limit := w.limit.Load(); limit > 0 {
		w.function.Store(&function)
		w.timer.Reset(time.Duration(limit))
	}
}

// end stops it.
func (w *watch) end() {
	w.timer.Stop()
	w.function.Store(nil)
}
