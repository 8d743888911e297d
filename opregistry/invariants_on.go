//go:build invariants

package opregistry

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// scratchGuard is the number of float32s after scratch memory that must keep their value.
const scratchGuard = scratchAlign

// guardBits is the value of the guard: a NaN that no arithmetic makes.
const guardBits = 0x7fa5a5a5

// loans are the slices that Scratch has lent and Release has not taken back, by their first
// element. All scratch begins as NaN, so that an impl which reads what it has not written is found.
type loans struct {
	mu   sync.Mutex
	lent map[*float32]int // lengths
}

func (l *loans) lend(buf []float32) []float32 {
	all := buf[:cap(buf)]
	for i := range all {
		all[i] = math.Float32frombits(guardBits)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent == nil {
		l.lent = map[*float32]int{}
	}
	l.lent[unsafe.SliceData(all)] = len(buf)
	return buf
}

func (l *loans) settle(buf []float32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := unsafe.SliceData(buf)
	n, ok := l.lent[first]
	if !ok {
		panic("BUG: opregistry: Release got a slice that Scratch has not lent, or got it twice")
	}
	delete(l.lent, first)
	for i, v := range buf[n:cap(buf)] {
		if math.Float32bits(v) != guardBits {
			panic(fmt.Sprintf("BUG: opregistry: scratch of %d float32s was written at index %d", n, n+i))
		}
	}
}

// ForCall returns an Exec for one call, with the same workers and stream.
func (e *Exec) ForCall() *Exec { return NewExec(e.pool, e.stream) }

// Leak returns how many slices of scratch memory have not been released, and their length.
func (e *Exec) Leak() (slices, floats int) {
	e.loans.mu.Lock()
	defer e.loans.mu.Unlock()
	for _, n := range e.loans.lent {
		floats += n
	}
	return len(e.loans.lent), floats
}
