package cpu

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// chunkLength is how much memory is mapped at a time for regions that lie next to each other in
	// it.
	chunkLength = 256 << 20

	// minMapping is the least length of a region with a mapping of its own.
	minMapping = 64 << 20

	// regionGap is the least memory after a region of gapLength or more, which nobody touches.
	// Tensors of one size would otherwise begin at the same set of a cache, and rows of several
	// tensors compete for it.
	regionGap = 20 << 10
	gapLength = 512 << 10
)

// withGap returns the length of a region with the gap after it.
func withGap(length uint64) uint64 {
	if length < gapLength {
		return length
	}
	return roundUp(length+regionGap, uint64(os.Getpagesize()))
}

// hugePager takes memory from the operating system for pages of 2 MiB, as far as the system has
// them: with pages of 4 KiB kernels spend part of their time on translating addresses. Most regions
// are too short for such a page and share it with their neighbours.
type hugePager struct {
	systemPager
	next unsafe.Pointer // the rest of the chunk, which has never been used
	left uint64
}

func newSystemPager() pager { return &hugePager{} }

// acquire must not be called by two goroutines at the same time.
func (h *hugePager) acquire(length uint64) (unsafe.Pointer, error) {
	length = withGap(length)
	if length >= minMapping {
		return h.mapHuge(length)
	}
	if h.left < length {
		chunk, err := h.mapHuge(chunkLength)
		if err != nil {
			return h.systemPager.acquire(length) // there may be room for less
		}
		if err := h.close(); err != nil {
			return nil, err
		}
		h.next, h.left = chunk, chunkLength
	}
	p := h.next
	h.next, h.left = unsafe.Add(p, length), h.left-length
	return p, nil
}

// release also releases the gap after the region.
func (h *hugePager) release(p unsafe.Pointer, length uint64) error {
	return h.systemPager.release(p, withGap(length))
}

// mapHuge maps memory and asks for huge pages.
func (h *hugePager) mapHuge(length uint64) (unsafe.Pointer, error) {
	p, err := h.systemPager.acquire(length)
	if err == nil {
		// A kernel without huge pages refuses, and the memory serves as it is.
		_ = unix.Madvise(unsafe.Slice((*byte)(p), length), unix.MADV_HUGEPAGE)
	}
	return p, err
}

// close releases the rest of the chunk.
func (h *hugePager) close() error {
	p, left := h.next, h.left
	h.next, h.left = nil, 0
	if left == 0 {
		return nil
	}
	return h.systemPager.release(p, left)
}
