package cpu

import "unsafe"

// pager is where an arena takes its memory from.
type pager interface {
	// acquire returns length bytes of zeroed memory, aligned to at least
	// alignment bytes. length is a multiple of the page size.
	acquire(length uint64) (unsafe.Pointer, error)

	// release gives back what one call of acquire returned.
	release(p unsafe.Pointer, length uint64) error

	// bind asks that untouched memory be taken from a NUMA node where possible.
	bind(p unsafe.Pointer, length uint64, node int) error
}
