//go:build !darwin && !linux

package opencl

import (
	"unsafe"

	"github.com/primus-fl/primus/vendors/loader"
)

// There is no library on these systems, so nothing is ever reserved.

func reserve(uint64) (unsafe.Pointer, error) { return nil, loader.ErrPlatform }

func unreserve(unsafe.Pointer, uint64) error { return loader.ErrPlatform }
