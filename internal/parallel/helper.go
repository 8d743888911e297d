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

// run takes jobs of the pool until the helper is closed.
func (h *helper) run(p *Pool) {
	for {
		switch h.state.Load() {
		case closed:
			return
		case offered:
			if h.state.CompareAndSwap(offered, taken) {
				h.help(&p.job)
				poll(func() bool { return h.state.Load() != idle }, p.busy.Load)
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

// poll returns when ready returns true. It gives up maxSpin after running, which reports whether
// the job still runs, last returned true, or maxTail and maxSpin after the beginning.
func poll(ready, running func() bool) {
	const polls = 100 // between two reads of the clock
	begin := time.Now()
	for last := begin; time.Since(last) < maxSpin; {
		if running() && time.Since(begin) < maxTail {
			last = time.Now()
		}
		for range polls {
			if ready() {
				return
			}
		}
	}
}
