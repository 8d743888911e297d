//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemPager takes memory from the operating system by anonymous mmap.
type systemPager struct{}

func (systemPager) acquire(length uint64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func (systemPager) release(p unsafe.Pointer, length uint64) error {
	return unix.MunmapPtr(p, uintptr(length))
}

func (systemPager) bind(p unsafe.Pointer, length uint64, node int) error {
	return bindToNode(p, length, node)
}

func (systemPager) close() error { return nil }
