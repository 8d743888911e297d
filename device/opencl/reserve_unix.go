//go:build darwin || linux

package opencl

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve returns an address range of this process that nothing can be read from or written to.
func reserve(size uint64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
}

// unreserve returns a range.
func unreserve(p unsafe.Pointer, size uint64) error { return unix.MunmapPtr(p, uintptr(size)) }
