// Package device is the contract between the training runtime and the memory, streams and events of
// the devices it trains on.
//
// It holds the [Backend] interface, a [Registry] of backends by name, and [Select], which picks one
// from the environment. Implementations are packages of their own: device/cpu works on every
// machine, device/opencl drives everything with an OpenCL driver, and device/devicetest tests any
// implementation against the contract.
//
// # Concepts
//
// A backend drives the devices of one kind (CPU, GPU, a vendor's chip). Devices are numbered from 0
// within their backend, and one of them is current for each OS thread. Memory is allocated on the
// current device. A stream is a queue of work that runs in order. An event marks a point in a
// stream; waiting for the event waits for the work before that point. Handles of streams and events
// belong to the backend that created them.
//
// The program registers its backends explicitly: nothing registers itself. The environment variable
// STEPMESH_BACKEND names the backend to use. STEPMESH_BAKCEND, the misspelling that StepMesh itself
// reads, is accepted too, so that existing job scripts keep working.
//
// # Concurrency
//
// A Registry and every Backend are safe for concurrent use. The current device belongs to an OS
// thread, so a goroutine that calls SetDevice must first call runtime.LockOSThread. The package has
// no global state and starts no goroutines.
//
// # Errors
//
// Errors say what was given, what was expected and what to do. Callers can tell them apart with
// errors.Is and the sentinels of this package ([ErrNotFound], [ErrNoDevice], [ErrUnusable],
// [ErrConflict], [ErrDuplicate], [ErrInvalidName], [ErrOutOfMemory], [ErrLost], [ErrClosed]).
// Backends wrap the last three, so that a caller does not depend on one implementation.
package device
