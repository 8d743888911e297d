package cpu

import "unsafe"

// pager provides the memory of an arena.
type pager interface {
	// acquire returns length bytes of zeroed memory, aligned to at least
	// alignment bytes. length is a multiple of the page size.
	acquire(length uint64) (unsafe.Pointer, error)

	// release returns the memory of one call of acquire.
	release(p unsafe.Pointer, length uint64) error

	// bind asks the system to take untouched memory from a NUMA node where possible.
	bind(p unsafe.Pointer, length uint64, node int) error

	// close releases what is kept for later calls of acquire.
	close() error
}
