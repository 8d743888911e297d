package sysmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the huge pages of amd64 and of arm64 with pages of 4 KiB.
const hugePage = 2 << 20

// PreferHugePages asks for huge pages behind memory that has not been used yet: the first use of a
// page of 4 KiB takes longer than to fill it. A system without them is no error.
func PreferHugePages(memory []byte) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	skip := -begin % hugePage
	if n := uintptr(len(memory)); skip < n {
		if whole := (n - skip) / hugePage * hugePage; whole > 0 {
			_ = unix.Madvise(memory[skip:skip+whole], unix.MADV_HUGEPAGE)
		}
	}
}
