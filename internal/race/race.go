//go:build race

package race

import (
	"runtime"
	"unsafe"
)

// Enabled says whether the program was built with the race detector.
const Enabled = true

// Read reports that all elements of s are read.
func Read[T any](s []T) {
	ReadMemory(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Write reports that all elements of s are written.
func Write[T any](s []T) {
	WriteMemory(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(*new(T))))
}

// ReadMemory reports that size bytes from p on are read.
func ReadMemory(p unsafe.Pointer, size int) {
	if size > 0 {
		runtime.RaceReadRange(p, size)
	}
}

// WriteMemory reports that size bytes from p on are written.
func WriteMemory(p unsafe.Pointer, size int) {
	if size > 0 {
		runtime.RaceWriteRange(p, size)
	}
}
