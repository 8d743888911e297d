//go:build !race

package race

import "unsafe"

// Enabled says whether the program was built with the race detector.
const Enabled = false

// Read reports that all elements of s are read.
func Read[T any]([]T) {}

// Write reports that all elements of s are written.
func Write[T any]([]T) {}

// ReadMemory reports that size bytes from p on are read.
func ReadMemory(unsafe.Pointer, int) {}

// WriteMemory reports that size bytes from p on are written.
func WriteMemory(unsafe.Pointer, int) {}
