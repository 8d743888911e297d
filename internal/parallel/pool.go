package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// How long a worker polls before it sleeps. On a virtual machine waking a sleeper costs the waker
// about 10 µs and takes effect after 70, during which a job has a worker less.
const (
	// helperSpin is for a helper without a job. A longer time keeps more helpers awake to the next
	// job, but takes cycles from a vendor's library that runs between two jobs, and, on a machine
	// that other programs use, from the workers themselves, of which a spinning one runs instead.
	helperSpin = 50 * time.Microsecond

	// callerSpin is for a caller whose helpers still run.
	callerSpin = 100 * time.Microsecond
)

// cacheLine separates what different workers write.
const cacheLine = 64

// Pool is a fixed set of workers. It implements opregistry.Pool.
type Pool struct {
	helpers []*helper
	busy    atomic.Bool // held by the call that uses the helpers, and after Close
	job     job         // of the call that holds busy
	ended   sync.WaitGroup
	close   sync.Once
}

// New starts a pool of this many workers, at least one. Close ends it.
func New(workers int) *Pool {
	p := &Pool{job: job{done: make(chan struct{}, 1)}}
	for range workers - 1 {
		h := &helper{wake: make(chan struct{}, 1)}
		p.helpers = append(p.helpers, h)
		p.start(h)
	}
	return p
}

// start runs h in a new goroutine, again if a part ends the goroutine, so that the pool does not
// lose a worker.
func (p *Pool) start(h *helper) {
	p.ended.Go(func() {
		returned := false
		defer func() {
			if !returned {
				p.start(h)
			}
		}()
		h.run(&p.job)
		returned = true
	})
}

// Workers returns the number of workers, the caller of Run included.
func (p *Pool) Workers() int { return len(p.helpers) + 1 }

// Close ends the helpers after the Run that uses them has returned. It is idempotent; later Runs
// run in their callers. A part must not call it.
func (p *Pool) Close() {
	p.close.Do(func() {
		for !p.busy.CompareAndSwap(false, true) {
			runtime.Gosched()
		}
		for _, h := range p.helpers {
			h.setState(closed)
		}
		p.ended.Wait()
	})
}

// Run calls t.Do once for each part in [0, parts), on at most as many workers as there are parts,
// and returns when all calls have returned. It panics with a *Panic when a part panics. The caller
// sees what the parts wrote.
func (p *Pool) Run(parts int, t opregistry.Task) {
	helpers := min(parts-1, len(p.helpers))
	if helpers <= 0 || !p.busy.CompareAndSwap(false, true) {
		runSerial(parts, t)
		return
	}
	p.job.begin(parts, t, helpers)
	for _, h := range p.helpers[:helpers] {
		h.setState(offered)
	}
	finished := false
	defer func() {
		if !finished { // the caller's part called runtime.Goexit
			p.finish(helpers)
		}
	}()
	p.job.work()
	finished = true
	if failed := p.finish(helpers); failed != nil {
		panic(failed)
	}
}

// finish waits for the helpers that took the job and makes the pool available again.
func (p *Pool) finish(helpers int) *Panic {
	untaken := 0
	for _, h := range p.helpers[:helpers] {
		if h.takeBack() {
			untaken++
		}
	}
	failed := p.job.end(untaken)
	p.busy.Store(false)
	return failed
}

func runSerial(parts int, t opregistry.Task) {
	part := 0
	defer func() {
		if value := recover(); value != nil {
			panic(newPanic(value, part))
		}
	}()
	for ; part < parts; part++ {
		t.Do(part)
	}
}

var _ opregistry.Pool = (*Pool)(nil)
