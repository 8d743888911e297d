// Package gemm has the matrix products of vendor.opencl.
//
// Every element of a result is one chain of fused multiplications and additions over the inner axis
// in ascending order, in f32. So all kernels and all shapes of tiles give the same bits, and the
// choice among them is one of speed alone.
package gemm
