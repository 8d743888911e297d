// Package openblas serves generic_gemm in f32 with OpenBLAS, loaded while the
// program runs.
//
// # Concepts
//
// A Library finds OpenBLAS when its impl is first asked whether it is available,
// never before. Three settings go into the environment first, unless the user has
// set them: OPENBLAS_CORETYPE, because releases before the end of 2023 take
// recent Intel server CPUs for one of the SSE era and lose four fifths of the
// speed; OPENBLAS_NUM_THREADS; and OPENBLAS_THREAD_TIMEOUT, without which idle
// threads spin on the CPUs that the program's own workers need. The core type is
// read back, and Info warns when the library still runs kernels of an older
// generation than the CPU's.
//
// The impl is vendor.openblas. It declines what package blas declines, and
// products below 64 kFLOP, for which the call costs more than it gains.
//
// # Concurrency
//
// A Library is safe for concurrent use; a program needs one. Calls of OpenBLAS are
// bounded so that callers and OpenBLAS's own threads together are not more than
// the CPUs; callers beyond that wait without holding an OS thread.
//
// # Errors
//
// Where OpenBLAS is missing or unfit, the impl is not available and says why;
// nothing else fails.
package openblas
