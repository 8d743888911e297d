package cpu

import "unsafe"

// Stats describes the memory of a Backend at one moment.
type Stats struct {
	Blocks      uint64 // blocks that are allocated
	Bytes       uint64 // bytes that were asked for in those blocks
	PeakBytes   uint64 // the most that Bytes has been
	MappedBytes uint64 // bytes held from the operating system
	IdleBytes   uint64 // part of MappedBytes kept for reuse, without a block in it

	BindFailures uint64 // times that memory could not be bound to its NUMA node
	BindError    error  // the last of those failures; the memory is used all the same
}

// Stats returns the state of the backend's memory.
func (b *Backend) Stats() Stats { return b.arena.statistics() }

// Alloc returns size bytes of zeroed memory, aligned to 64 bytes and outside the
// Go heap, that lives until Free. On a machine with several NUMA nodes it is
// taken from the current device's node where possible.
//
// A size of 0 or above 2^46 is an error. The error matches device.ErrOutOfMemory
// when the operating system refuses and device.ErrClosed after Close.
func (b *Backend) Alloc(size uint64) (unsafe.Pointer, error) {
	node := anyNode
	if nodes := b.nodes(); len(nodes) > 1 {
		node = nodes[b.current()]
	}
	return b.arena.alloc(size, node)
}

// Free takes a block back. The pointer must be one that Alloc returned and that
// was not freed since; any other is an error that says which of the two it is.
// A block may be freed after Close.
func (b *Backend) Free(p unsafe.Pointer) error { return b.arena.free(p) }
