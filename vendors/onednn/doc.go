// Package onednn serves generic_gemm in f32 and bf16, and layernorm_fwd, layernorm_bwd and
// the gradients of two softmaxes in bf16, with oneDNN (formerly MKL-DNN), loaded while the
// program runs.
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
// The impls are vendor.onednn. That of generic_gemm declines what package blas declines,
// and products below 4 MFLOP, for which the hand-over costs more than oneDNN gains.
// Operands in bf16 give a result in f32. They are declined on CPUs without
// instructions for bf16, where oneDNN is slower than the default impl, and below
// 8 MFLOP.
//
// The others are primitives of oneDNN, each made for one shape; the last 32 of a caller
// are kept. They decline operands that are not contiguous, on another device than the
// CPU, or of mixed dtypes, and a scale_factor other than 1. They declare what oneDNN 2.6
// did faster than the default impl: bf16, from a million elements on. mu and rsigma are
// those that the op defines.
//
// Not here are softmax forward, for which oneDNN took 1.05 to 2.2 times as long as the
// default impl; the gradients of causal softmaxes, whose hidden columns are not to be
// looked at; and rmsnorm, which oneDNN 2 lacks. oneDNN 3 has another C API for primitives
// and serves products alone.
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
