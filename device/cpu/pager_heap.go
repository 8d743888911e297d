package cpu

import (
	"errors"
	"unsafe"
)

// heapPager takes memory from the Go heap, whose objects do not move, on systems without a better
// way. The garbage collector frees the memory when no pointer to it is left. The type is compiled
// everywhere, so that its tests run everywhere. Unlike other pagers it ends the process when memory
// runs out.
type heapPager struct{}

func (heapPager) acquire(length uint64) (unsafe.Pointer, error) {
	memory := make([]byte, length+alignment)
	p := unsafe.Pointer(unsafe.SliceData(memory))
	return unsafe.Add(p, -uintptr(p)&(alignment-1)), nil
}

func (heapPager) release(unsafe.Pointer, uint64) error { return nil }

func (heapPager) bind(unsafe.Pointer, uint64, int) error { return errNoBinding }

func (heapPager) close() error { return nil }

var errNoBinding = errors.New("this operating system has no NUMA binding")
