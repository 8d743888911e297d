package opregistry

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

// Task is work that is cut into parts, which may run at the same time.
type Task interface {
	// Do runs one part. Parts must not depend on each other.
	Do(part int)
}

// Pool runs the parts of tasks on a fixed set of workers.
type Pool interface {
	// Workers returns how many parts run at the same time.
	Workers() int
	// Run calls t.Do for each part in [0, parts) and returns when all have
	// returned. A panic of a part is raised again in the caller.
	Run(parts int, t Task)
}

// Serial is the Pool that runs every part in the caller, in order.
type Serial struct{}

// Workers returns 1.
func (Serial) Workers() int { return 1 }

// Run calls t.Do for each part in order.
func (Serial) Run(parts int, t Task) {
	for i := range parts {
		t.Do(i)
	}
}

// Goroutines is a Pool of this many workers, which are started for each task: it needs no Close,
// and a task should take far longer than starting them, some microseconds.
type Goroutines int

// Workers returns the number of workers, at least 1.
func (g Goroutines) Workers() int { return max(int(g), 1) }

// Run calls t.Do for each part. After a panic no further parts are started, and the panic is raised
// again in the caller when those that run have returned.
func (g Goroutines) Run(parts int, t Task) {
	workers := min(g.Workers(), parts)
	if workers <= 1 {
		Serial{}.Run(parts, t)
		return
	}
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		once  sync.Once
		cause any
	)
	work := func() {
		done := false
		defer func() {
			if done {
				return
			}
			value := recover()
			if value == nil {
				value = errors.New("opregistry: a part of a task ended its goroutine")
			}
			next.Store(int64(parts))
			once.Do(func() { cause = value })
		}()
		for part := next.Add(1) - 1; part < int64(parts); part = next.Add(1) - 1 {
			t.Do(int(part))
		}
		done = true
	}
	for range workers {
		wg.Go(work)
	}
	wg.Wait()
	if cause != nil {
		panic(cause)
	}
}

// Exec provides what an impl needs to run: workers, a stream and scratch memory. One Exec serves
// many calls, even at the same time.
type Exec struct {
	loans  loans // what Scratch has lent, in builds with the tag invariants
	pool   Pool
	stream device.Stream

	mu   sync.Mutex
	free [bits.UintSize][][]float32 // released scratch by the power of two of its capacity
}

// NewExec returns an Exec with these workers; a nil pool means Serial.
func NewExec(pool Pool, stream device.Stream) *Exec {
	if pool == nil {
		pool = Serial{}
	}
	return &Exec{pool: pool, stream: stream}
}

// Pool returns the workers.
func (e *Exec) Pool() Pool { return e.pool }

// Blocks calls f for consecutive blocks of n items, on the workers of the call: items lo to hi−1,
// size of them but for the last block. How items are cut depends on n and size alone, so what is
// computed block by block has the same bits for any number of workers. A panic of f is raised again
// in the caller. It panics if size is below 1.
func (e *Exec) Blocks(n, size int, f func(lo, hi int)) {
	if size < 1 {
		panic(fmt.Sprintf("BUG: opregistry: got blocks of %d items, want at least 1", size))
	}
	if n > 0 {
		e.pool.Run((n-1)/size+1, blocks{n, size, f})
	}
}

// blocks is the task of Exec.Blocks.
type blocks struct {
	n, size int
	f       func(lo, hi int)
}

// Do runs one block.
func (b blocks) Do(part int) {
	lo := part * b.size
	b.f(lo, lo+min(b.size, b.n-lo))
}

// Stream returns the stream that device work belongs to.
func (e *Exec) Stream() device.Stream { return e.stream }

// scratchAlign is the alignment of scratch in float32s: one cache line.
const scratchAlign = 16

// Scratch returns n float32s of undefined content, aligned to 64 bytes. The caller returns them
// with Release. In a steady state nothing is allocated.
func (e *Exec) Scratch(n int) []float32 {
	class := bits.Len(uint(max(n+scratchGuard, scratchAlign) - 1))
	e.mu.Lock()
	if l := len(e.free[class]); l > 0 {
		buf := e.free[class][l-1]
		e.free[class] = e.free[class][:l-1]
		e.mu.Unlock()
		return e.loans.lend(buf[:n])
	}
	e.mu.Unlock()
	size := 1 << class
	raw := make([]float32, size+scratchAlign)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) / 4 % scratchAlign)
	return e.loans.lend(raw[skip : skip+n : skip+size])
}

// Release takes back a slice that Scratch returned.
func (e *Exec) Release(buf []float32) {
	e.loans.settle(buf)
	class := bits.Len(uint(cap(buf) - 1))
	e.mu.Lock()
	e.free[class] = append(e.free[class], buf[:0])
	e.mu.Unlock()
}
