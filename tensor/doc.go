// Package tensor describes typed, strided views of device memory.
//
// # Concepts
//
// A Storage is one block of memory on one device. A Tensor is a view of a Storage: a data type, a
// shape, strides and an offset, the last two counted in elements. Views share their Storage; no
// function of this package copies data unless its name says so (CopyFrom, SetFloat64s, …). The
// description of a Tensor never changes after it is made; its data may.
//
// Memory comes from a device.Backend (New), from a Go slice (FromSlice) or from another framework
// (FromDLPack). Memory of a backend belongs to the caller of New, who returns it with Release;
// after that no view of the Storage may be used.
//
// Layout follows DLPack: strides are counted in elements, a contiguous tensor is row-major, and
// DLPack returns the fields that other frameworks exchange.
//
// # Aliasing
//
// Every op of the project follows this contract unless its own documentation allows more. Two
// operands of one call are either
//
//   - disjoint: no byte belongs to both, or
//   - the same view: equal data pointer, dtype, shape and strides,
//
// and an operand that is written may be the same view as another only where the op's documentation
// says so ("y may be x"). Partial overlap is always an error. Overlap and SameView answer the
// question; the validation of an op asks it before any implementation runs.
//
// # Concurrency
//
// A Tensor is immutable and may be read from any goroutine. Access to the data is not synchronised:
// concurrent writers of one element, or a writer and a reader, race as they do with a slice.
//
// # Errors
//
// Functions that take shapes, indexes or dtypes from a user return *Error, which names the
// function, what was given and what was expected. Data, At and Set are for code whose arguments
// were validated; they panic on misuse.
package tensor
