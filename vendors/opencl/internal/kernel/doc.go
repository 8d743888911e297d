// Package kernel is what the families of vendors/opencl share: the head of every source, programs
// that are built once per device and variant, scratch memory, and views of operands.
//
// # Concepts
//
// A family is a package with its OpenCL C in a file and one Program for it. A variant is a
// comparable struct of what is fixed when the program is built: dtypes and sizes of tiles. An impl
// views its operands, declines what it does not serve, and queues kernels on the stream of its
// Exec; it never waits.
//
// A buffer is two arguments of a kernel, the memory object and the number of elements before the
// first one; the macros IN, OUT and AT of prelude.cl hide that.
package kernel
