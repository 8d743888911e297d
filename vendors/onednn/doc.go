// Package onednn serves generic_gemm in f32 and bf16, and layernorm_fwd, layernorm_bwd and the
// gradients of two softmaxes in bf16, with oneDNN (formerly MKL-DNN), which is loaded while the
// program runs.
//
// # Concepts
//
// A Library looks for oneDNN when its impl is first asked whether it is available, never before.
// oneDNN detects the CPU's instructions itself. The usual build runs on GNU OpenMP, which reads its
// settings while it is loaded, so the Library sets them in the environment first, unless the user
// has set them: OMP_NUM_THREADS, and OMP_WAIT_POLICY with GOMP_SPINCOUNT, without which idle OpenMP
// threads spin on the CPUs that the program's own workers need.
//
// OpenMP keeps a team of threads for each OS thread that calls it. The impl therefore makes its
// calls on fixed OS threads, which live as long as the process: one, or more if a product runs on
// at most half of the CPUs. The hand-over to such a thread costs 5 to 20 µs.
//
// The impls are named vendor.onednn. The one of generic_gemm declines what package blas declines,
// and products below 4 MFLOP, for which the hand-over costs more than oneDNN gains. Operands in
// bf16 give a result in f32. They are declined on CPUs without instructions for bf16, where oneDNN
// is slower than the default impl, and below 8 MFLOP.
//
// The others are primitives of oneDNN, each created for one shape; each calling thread keeps the
// last 32. They decline operands that are not contiguous, lie on another device than the CPU, or
// have mixed dtypes, and a scale_factor other than 1. They declare the calls that oneDNN 2.6
// computed faster than the default impl: bf16, from a million elements on. mu and rsigma are those
// that the op defines.
//
// The package does not serve softmax forward, for which oneDNN took 1.05 to 2.2 times as long as
// the default impl; the gradients of causal softmaxes, whose hidden columns must not be read; and
// rmsnorm, which oneDNN 2 lacks. oneDNN 3 has another C API for primitives, so it serves products
// only.
//
// # Concurrency
//
// A Library is safe for concurrent use; a program needs one. Callers wait without holding an OS
// thread.
//
// # Errors
//
// Where oneDNN is missing, the impl is not available and says why; nothing else fails. A status of
// oneDNN other than success is an error of the call.
package onednn
