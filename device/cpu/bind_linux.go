package cpu

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bindToNode prefers the node and does not insist on it: memory from another node is slower, but
// running out of memory ends the process.
func bindToNode(p unsafe.Pointer, length uint64, node int) error {
	mask := make([]uint, node/bits.UintSize+1)
	mask[node/bits.UintSize] = 1 << (node % bits.UintSize)
	// The kernel reads one bit less than the number it is given.
	maskBits := uintptr(len(mask)*bits.UintSize + 1)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(p), uintptr(length),
		unix.MPOL_PREFERRED, uintptr(unsafe.Pointer(&mask[0])), maskBits, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
