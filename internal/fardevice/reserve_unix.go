//go:build unix

package fardevice

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve returns addresses at which every access faults.
func reserve(size int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func release(p unsafe.Pointer, size int) error { return unix.MunmapPtr(p, uintptr(size)) }
