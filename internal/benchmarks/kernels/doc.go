// Command kernels measures the kernels of impls/flagos beside a peer that does the
// same work in the same run, and prints the ratios of their rates.
//
//	gemm       the products of a training step and squares, beside OpenBLAS
//	memory     the memory-bound ops, beside a loop that only moves as many bytes
//	gelu       GELU and its gradients, beside such a loop: arithmetic is their bound
//	attention  causal attention forward and backward, beside PyTorch
//	options    attention with dropout, windows, biases, ALiBi and sinks, beside that without
//
// Both sides are called in turn until the time of a case is used up, and the
// fastest call of each counts: it is the one that other load on the machine has
// disturbed least. A ratio above 1 says that flagos is the faster one. On a machine that
// others use, -cpu counts the CPU time of one thread, in which they have no part but by
// what they do to caches, memory and the frequency.
//
// Each number of threads is measured in a process of its own, because OpenBLAS
// takes its number from the environment when it is loaded. Cases without their
// peer on the machine are listed with the reason and without a ratio.
package main
