package cpu

import (
	"errors"
	"fmt"
)

var (
	errNilPointer   = errors.New("want a pointer that Alloc returned")
	errForeign      = errors.New("Alloc of this backend did not return this pointer")
	errAlreadyFreed = errors.New("the block is already freed")
	errInsideFreed  = errors.New("inside a block that is already freed")
)

// liveLocked returns the live block at address, or why there is none.
func (a *arena) liveLocked(address uintptr) (*region, int, error) {
	if address == 0 {
		return nil, 0, errNilPointer
	}
	at, found := a.searchLocked(address)
	if !found {
		at--
	}
	if at >= 0 {
		r := a.regions[at]
		if index, offset, ok := r.extent().locate(address); ok {
			return r, index, r.check(index, offset)
		}
	}
	return nil, 0, a.releasedLocked(address)
}

// check returns nil for an offset of 0 in a live block.
func (r *region) check(index int, offset uint64) error {
	switch {
	case index >= r.fresh:
		return errForeign
	case r.sizes[index] != 0 && offset == 0:
		return nil
	case r.sizes[index] != 0:
		return fmt.Errorf("%d bytes into the block of %d bytes at %#x; pass the pointer that Alloc returned",
			offset, r.sizes[index], uintptr(r.pointer(index)))
	case offset == 0:
		return errAlreadyFreed
	default:
		return errInsideFreed
	}
}

// releasedLocked tells a pointer into memory that was returned to the operating system from one
// that this arena never had.
func (a *arena) releasedLocked(address uintptr) error {
	for _, e := range a.released {
		if _, offset, ok := e.locate(address); ok {
			if offset == 0 {
				return errAlreadyFreed
			}
			return errInsideFreed
		}
	}
	return errForeign
}
