// Package parallel runs the parts of a task on a fixed set of workers.
//
// # Concepts
//
// A Pool has w workers: the goroutine that calls Run and w-1 helpers that wait
// for work without spinning for long. Parts are handed out by an atomic counter,
// so the split of the work into parts is the kernel's choice and never depends on
// the number of workers: results are the same bit for bit for any Pool.
//
// # Concurrency
//
// A Pool is safe for concurrent use; calls that find the helpers busy run their
// parts in the caller. Run inside a part runs serially.
//
// # Errors
//
// A part that panics stops the hand-out of further parts; when all running parts
// have returned, Run panics in the caller with the first value.
package parallel

import (
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
)

// Pool is a fixed set of workers. It implements opregistry.Pool.
type Pool struct {
	workers int
	busy    atomic.Bool
	wake    []chan *job
	job     job // of the call that holds busy
	wg      sync.WaitGroup
	close   sync.Once
}

type job struct {
	task    opregistry.Task
	parts   int64
	next    atomic.Int64
	pending sync.WaitGroup

	once  sync.Once
	cause any
	panic atomic.Bool
}

// New starts a pool of this many workers, at least one. Close ends it.
func New(workers int) *Pool {
	p := &Pool{workers: max(workers, 1)}
	for range p.workers - 1 {
		wake := make(chan *job, 1)
		p.wake = append(p.wake, wake)
		p.wg.Go(func() {
			for j := range wake {
				j.work()
				j.pending.Done()
			}
		})
	}
	return p
}

// Workers returns the number of workers, the caller of Run included.
func (p *Pool) Workers() int { return p.workers }

// Close ends the helpers. It is idempotent and must not overlap a Run.
func (p *Pool) Close() {
	p.close.Do(func() {
		for _, wake := range p.wake {
			close(wake)
		}
		p.wg.Wait()
	})
}

// Run calls t.Do for each part in [0, parts), on as many workers as there are
// parts for, and returns when all have returned.
func (p *Pool) Run(parts int, t opregistry.Task) {
	if parts <= 1 || p.workers == 1 || !p.busy.CompareAndSwap(false, true) {
		opregistry.Serial{}.Run(parts, t)
		return
	}
	j := &p.job
	j.task, j.parts = t, int64(parts)
	j.next.Store(0)
	helpers := min(p.workers, parts) - 1
	j.pending.Add(helpers)
	for _, wake := range p.wake[:helpers] {
		wake <- j
	}
	j.work()
	j.pending.Wait()
	j.task = nil
	failed, cause := j.panic.Load(), j.cause
	if failed {
		j.panic.Store(false)
		j.once, j.cause = sync.Once{}, nil
	}
	p.busy.Store(false)
	if failed {
		panic(cause)
	}
}

func (j *job) work() {
	defer func() {
		if cause := recover(); cause != nil {
			j.once.Do(func() { j.cause = cause })
			j.panic.Store(true)
			j.next.Store(j.parts)
		}
	}()
	for {
		part := j.next.Add(1) - 1
		if part >= j.parts {
			return
		}
		j.task.Do(int(part))
	}
}

// Kernel is a function over the parts of a task that takes its arguments by
// value. It keeps the memory that carries them to the workers, so that a call
// allocates nothing in a steady state. Make one a kernel with NewKernel.
type Kernel[A any] struct {
	do    func(a *A, part int)
	boxes sync.Pool
}

type box[A any] struct {
	kernel *Kernel[A]
	args   A
}

// NewKernel returns a Kernel that runs do. do must not keep a.
func NewKernel[A any](do func(a *A, part int)) *Kernel[A] {
	k := &Kernel[A]{do: do}
	k.boxes.New = func() any { return &box[A]{kernel: k} }
	return k
}

// Run calls the kernel's function for each part in [0, parts) on the pool.
func (k *Kernel[A]) Run(pool opregistry.Pool, parts int, args A) {
	b := k.boxes.Get().(*box[A])
	b.args = args
	pool.Run(parts, b)
	var zero A
	b.args = zero
	k.boxes.Put(b)
}

// Do runs one part.
func (b *box[A]) Do(part int) { b.kernel.do(&b.args, part) }

// Split returns the bounds of part i of n items cut into parts of nearly equal
// size.
func Split(n, parts, i int) (lo, hi int) {
	return i * n / parts, (i + 1) * n / parts
}

var _ opregistry.Pool = (*Pool)(nil)
