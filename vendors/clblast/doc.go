// Package clblast serves generic_gemm on OpenCL devices with CLBlast, a library of BLAS routines
// written in OpenCL. It is loaded at run time as libclblast.so.1, and works in the queues and on
// the memory of device/opencl.
//
// # Concepts
//
// The library has products without an epilogue: the impl declines a bias, the gradient of a bias
// and GELU. Operands are f32, or all f64; the last axis is contiguous and leading axes have a
// common pitch.
//
// # Errors
//
// An impl declines a call that it does not serve with an error that wraps opregistry.ErrUnsupported
// before it queues anything. A status that the library returns is an error with the sizes of the
// product.
package clblast
