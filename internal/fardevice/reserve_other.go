//go:build !unix

package fardevice

import "unsafe"

// reserve returns the addresses of memory that is used for nothing, because this system is not
// asked for addresses that fault.
func reserve(size int) (unsafe.Pointer, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Pointer(unsafe.SliceData(words)), nil
}

func release(unsafe.Pointer, int) error { return nil }
