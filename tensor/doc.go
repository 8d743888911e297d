// Package tensor describes typed, strided views of device memory.
//
// # Concepts
//
// A Storage is one block of memory on one device. A Tensor is a view of a
// Storage: a data type, a shape, strides and an offset, the last two counted in
// elements. Views share their Storage; no function of this package copies data
// unless its name says so (CopyFrom, SetFloat64s, …). The description of a
// Tensor never changes after it was made, its data may.
//
// Memory comes from a device.Backend (New), from a Go slice (FromSlice) or from
// another framework (FromDLPack).
// Memory of a backend belongs to the caller of New, who ends its life with
// Release; every view of the Storage is dead from then on.
//
// Layout follows DLPack: strides in elements, row-major when contiguous, and
// DLPack returns the fields that other frameworks exchange.
//
// # Aliasing
//
// This is the contract that every op of the project follows unless its own
// documentation widens it. Two operands of one call are either
//
//   - disjoint: no byte belongs to both, or
//   - the same view: equal data pointer, dtype, shape and strides,
//
// and the same view is legal for an operand that is written only where the op's
// documentation says so ("y may be x"). Partial overlap is always an error.
// Overlap and SameView answer the question; an op's validation asks it before
// any implementation runs.
//
// # Concurrency
//
// A Tensor is immutable and may be read from any goroutine. Access to the data
// is not synchronised: concurrent writers of one element, or a writer and a
// reader, race as they do with a slice.
//
// # Errors
//
// Functions that take shapes, indexes or dtypes from a user return *Error,
// which names the function, what was given and what was expected. Data, At and
// Set are for code whose arguments were validated; they panic on misuse.
package tensor
