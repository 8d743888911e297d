// Command kernels compares the kernels of impls/flagos with a peer that does the same work in the
// same run, and prints the ratios of their rates.
//
//	gemm       the products of a training step and squares, compared with OpenBLAS
//	memory     the memory-bound ops, compared with a loop that only moves as many bytes
//	gelu       GELU and its gradients, compared with such a loop: arithmetic is their bound
//	quant      rounding to fp8 and fp4 and back, compared with such a loop
//	moe        the router of a mixture of experts and the permutation of its rows, likewise
//	state      the cache of keys and values, and the gated delta rule, likewise
//	attention  causal attention forward and backward, compared with PyTorch
//	options    attention with dropout, windows, biases, ALiBi and sinks, compared with plain attention
//
// Both sides are called by turns until the time of a case is used up, and the fastest call of each
// counts: it is the one that other load on the machine has disturbed least. A ratio above 1 means
// that flagos is faster. On a machine that others use, -cpu counts the CPU time of one thread,
// which other load affects only through caches, memory and the frequency.
//
// Each number of threads is measured in its own process, because OpenBLAS takes its number from the
// environment when it is loaded. Cases whose peer is missing on the machine are listed with the
// reason and without a ratio.
package main
