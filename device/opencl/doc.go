// Package opencl is the device backend for everything that has an OpenCL driver: GPUs, CPUs and
// other accelerators. It calls the system's OpenCL loader without cgo.
//
// # Concepts
//
// A [Backend] drives all devices of all drivers, numbered in the order in which the loader lists
// them. Nothing is loaded before the first use.
//
// Memory comes from a pool of each device. The addresses that Alloc returns are reserved in this
// process and stand for memory that only the device can access: arithmetic with them is as usual,
// and an access by the processor is a fault. Buffer and Of find the memory object of OpenCL and the
// offset in it. Freed blocks are used again after the work that was queued before Free.
//
// A stream is a command queue that runs its work in order; every device has a default stream. An
// event is a marker in a queue, with a time stamp of the device.
//
// A [Device] builds a [Program] from a source in OpenCL C 1.2, once per source and options. A
// [Kernel] of it is launched with tensors and numbers and returns at once. Results are there after
// an event has completed or after a copy to the host.
//
// # Concurrency
//
// Everything is safe for concurrent use. The current device belongs to an OS thread.
//
// # Errors
//
// A call that fails is an [*Error] with the function, the name of its code, the device and what to
// do. It matches device.ErrOutOfMemory or device.ErrLost where the code says so. A source that does
// not compile is a [*BuildError]. Without a library or a device, Usable says what was looked for.
package opencl
