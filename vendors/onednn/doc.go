// Package onednn serves generic_gemm in f32 and bf16 with oneDNN (formerly MKL-DNN),
// loaded while the program runs.
//
// # Concepts
//
// A Library finds oneDNN when its impl is first asked whether it is available,
// never before. oneDNN finds the CPU's instructions by itself. The usual build
// runs on GNU OpenMP, which reads its settings while it is loaded, so these go
// into the environment first, unless the user has set them: OMP_NUM_THREADS, and
// OMP_WAIT_POLICY with GOMP_SPINCOUNT, without which idle OpenMP threads spin on
// the CPUs that the program's own workers need.
//
// OpenMP keeps a team of threads for each OS thread that calls it. The impl
// therefore hands products to fixed OS threads, one unless a product runs on at
// most half of the CPUs, which live as long as the process. The hand-over costs 5
// to 20 µs.
//
// The impl is vendor.onednn. It declines what package blas declines, and products
// below 4 MFLOP, for which the hand-over costs more than oneDNN gains. Operands in
// bf16 give a result in f32. They are declined on CPUs without instructions for bf16,
// where oneDNN is slower than the default impl, and below 8 MFLOP.
//
// # Concurrency
//
// A Library is safe for concurrent use; a program needs one. Callers wait
// without holding an OS thread.
//
// # Errors
//
// Where oneDNN is missing, the impl is not available and says why; nothing else
// fails. A status of oneDNN other than success is an error of the call.
package onednn
