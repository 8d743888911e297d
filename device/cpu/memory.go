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
	BindError    error  // the last of those failures; the memory is used nevertheless
}

// Stats returns the state of the backend's memory.
func (b *Backend) Stats() Stats { return b.arena.statistics() }

// Alloc returns size bytes of zeroed memory, aligned to 64 bytes and outside the Go heap. The
// memory is valid until Free. On a machine with several NUMA nodes it is taken from the current
// device's node where possible.
//
// A size of 0 or above 2^46 is an error. The error matches device.ErrOutOfMemory when the operating
// system refuses and device.ErrClosed after Close.
func (b *Backend) Alloc(size uint64) (unsafe.Pointer, error) {
	node := anyNode
	if nodes := b.nodes(); len(nodes) > 1 {
		node = nodes[b.current()]
	}
	return b.arena.alloc(size, node)
}

// Free releases a block. The pointer must be one that Alloc returned and that has not been freed
// since; for any other the error says which of the two is wrong. A block may be freed after Close.
func (b *Backend) Free(p unsafe.Pointer) error { return b.arena.free(p) }
