// Package openblas serves generic_gemm in f32 with OpenBLAS, which is loaded while the program
// runs.
//
// # Concepts
//
// A Library looks for OpenBLAS when its impl is first asked whether it is available, never before.
// It sets three environment variables first, unless the user has set them: OPENBLAS_CORETYPE,
// because releases before the end of 2023 mistake recent Intel server CPUs for CPUs with only SSE
// and lose four fifths of the speed; OPENBLAS_NUM_THREADS; and OPENBLAS_THREAD_TIMEOUT, without
// which idle threads spin on the CPUs that the program's own workers need. The core type is read
// back, and Info warns when the library still runs kernels of an older generation than the CPU.
//
// The impl is vendor.openblas. It declines what package blas declines, and products below 64 kFLOP,
// for which the call costs more than it gains.
//
// # Concurrency
//
// A Library is safe for concurrent use; a program needs one. The number of concurrent calls of
// OpenBLAS is bounded so that callers and OpenBLAS's own threads together are not more than the
// CPUs; further callers wait without holding an OS thread.
//
// # Errors
//
// Where OpenBLAS is missing or cannot be used, the impl is not available and says why; nothing else
// fails.
package openblas
