package parallel

import (
	"sync/atomic"
	"time"
)

// The states of a helper. The helper moves itself from offered to taken, and between idle and
// asleep. The call that holds the pool moves it to offered and from there back to idle. Close moves
// it to closed.
const (
	idle int32 = iota
	asleep
	offered
	taken
	closed
)

// helper is a worker that waits for jobs.
type helper struct {
	_     [cacheLine]byte
	state atomic.Int32
	wake  chan struct{} // one token for each time that the helper is found asleep
	_     [cacheLine]byte
}

// setState changes the state of a helper that has no job, and wakes it.
func (h *helper) setState(state int32) {
	if h.state.Swap(state) == asleep {
		h.wake <- struct{}{}
	}
}

// takeBack withdraws an offer. It reports whether the helper had not taken it.
func (h *helper) takeBack() bool { return h.state.CompareAndSwap(offered, idle) }

// run takes jobs until the helper is closed.
func (h *helper) run(j *job) {
	for {
		switch h.state.Load() {
		case closed:
			return
		case offered:
			if h.state.CompareAndSwap(offered, taken) {
				h.help(j)
				poll(func() bool { return h.state.Load() != idle }, helperSpin)
			}
		default:
			if h.state.CompareAndSwap(idle, asleep) {
				<-h.wake
			}
		}
	}
}

// help works on a job. The deferred call also runs when a part ends the goroutine.
func (h *helper) help(j *job) {
	defer func() {
		h.state.Store(idle) // before leave: after that there may be a new offer
		j.leave()
	}()
	j.work()
}

// poll returns when ready returns true, or after some time.
func poll(ready func() bool, most time.Duration) {
	const polls = 100 // between two reads of the clock
	for start := time.Now(); time.Since(start) < most; {
		for range polls {
			if ready() {
				return
			}
		}
	}
}
