package device

import "errors"

// Errors of the registry and of Select.
var (
	// ErrNotFound reports that no backend is registered under a name.
	ErrNotFound = errors.New("device: no such backend")

	// ErrNoDevice reports an index that no device of a backend has.
	ErrNoDevice = errors.New("device: no such device")

	// ErrUnusable reports that a registered backend cannot be used on this machine.
	ErrUnusable = errors.New("device: backend is not usable")

	// ErrConflict reports that two environment variables name different backends.
	ErrConflict = errors.New("device: conflicting choice of backend")

	// ErrDuplicate reports that a name is already registered.
	ErrDuplicate = errors.New("device: backend is already registered")

	// ErrInvalidName reports a name that no backend may have.
	ErrInvalidName = errors.New("device: invalid backend name")
)

// Errors that every backend wraps in the same situation.
var (
	// ErrOutOfMemory reports that a device has no memory for an allocation.
	ErrOutOfMemory = errors.New("device: out of memory")

	// ErrLost reports that a device no longer works. Its memory is gone; a program that wants to go
	// on starts anew.
	ErrLost = errors.New("device: the device is lost")

	// ErrClosed reports the use of a backend after it was closed.
	ErrClosed = errors.New("device: backend is closed")
)
