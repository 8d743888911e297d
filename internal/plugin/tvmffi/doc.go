// Package tvmffi says how functions of a library for TVM FFI, such as compilers of kernels write
// them, serve ops. A function is exported with the prefix __tvm_ffi_ and takes packed arguments, as
// the C header of tvm-ffi describes them; tensors are those of DLPack.
//
// # Concepts
//
// A library of this kind does not say which op a function serves. A Mapping does, a file in JSON
// beside the library: it names the function, the op and the order of the arguments.
//
// # Errors
//
// Read returns an error for a file that is not a Mapping. Whether the ops and arguments in it exist
// is checked by package plugin.
package tvmffi
