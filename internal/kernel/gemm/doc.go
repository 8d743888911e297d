// Package gemm holds the innermost part of matrix products: a kernel that computes one tile of the
// result in registers, and the copies that bring operands into the order in which it reads them.
//
// # Concepts
//
// A Kernel is chosen by BestKernel from those that the machine can run. A blocked product cuts its
// operands into panels, packs them with Spread or Transpose, and runs the kernel on tile after
// tile. Everything has a version in plain Go, which is always compiled; the build tag noasm leaves
// the assembly out.
//
// # Determinism
//
// An element of a product depends on its row, its column and the kernel, not on its place in a tile
// or on the number of goroutines. Kernels differ from each other in the last bits.
//
// # Concurrency
//
// All functions may be called from any goroutine. They report to the race detector what the
// assembly reads and writes.
package gemm
