// Package cpu is the device backend that works on every machine: memory outside the Go heap,
// ordered streams run by goroutines, and events that mark points in them.
//
// # Concepts
//
// A device is a NUMA node of the machine that has memory; devices are numbered from 0 in the order
// of the node numbers. A machine without such information has one device. Alloc takes memory from
// the operating system, if possible from the current device's node. Freed blocks are kept for
// reuse, up to 256 MiB, because each page of fresh memory costs a page fault when it is first
// touched. They are cleared before they are handed out again. On Linux the memory is in huge pages
// where the system grants them to programs that ask (transparent_hugepage: madvise or always).
//
// A stream is a queue of Go functions. Each device has a default stream. A stream has a goroutine
// only while it has work, and its functions run with the stream's device as the current one. A
// function must not wait for its own stream with SyncEvent, FreeStream or Close: it would wait for
// itself.
//
// An event completes when the work before it in its stream is done.
//
// # Concurrency
//
// A Backend is safe for concurrent use. The current device belongs to an OS thread on Linux, so a
// goroutine that calls SetDevice calls runtime.LockOSThread first; elsewhere there is one device.
// When a thread ends while a device other than 0 is current, a later thread with the same number
// inherits that choice: call SetDevice(0) before unlocking.
//
// # Errors
//
// Misuse (an unknown or freed handle, a pointer that Alloc did not return, an index out of range)
// is an error and never a crash. A function that panics in a stream does not stop the stream: the
// panic becomes a [WorkError], which the next SyncEvent for a later point returns, or else
// FreeStream or Close. Errors match device.ErrOutOfMemory and device.ErrClosed where those apply.
package cpu
