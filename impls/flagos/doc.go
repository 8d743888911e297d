// Package flagos holds the default impls of all ops but the collectives, portable and fast on the
// processors of a host.
//
// # Concepts
//
// Source returns the impls, all of kind flagos with the id "default.flagos"; each family of ops is
// a package below this one, and what they share is in internal. They serve operands of f32, bf16
// and f16 in host memory. They decline other operands, before anything is written, with an error
// that wraps opregistry.ErrUnsupported. Operands may be views whose last axis is dense; where an op
// says "rows", views without a constant pitch for all rows are declined, too.
//
// All arithmetic is in f32 or better. Rows of bf16 and f16 are widened, a few at a time, to scratch
// in the first-level cache, where the kernels for f32 work on them, and results are rounded once
// when they are stored.
//
// An op is cut into parts by its shape alone, and each part is processed in rows or blocks that
// stay in the caches. Sums over parts are added up in the order of the parts. A product is also cut
// for its workers, but its parts share no sum. A result therefore has the same bits for any number
// of workers, on one machine; machines with other vector instructions differ in the last bits. The
// inner loops are those of internal/kernel, each with a version in plain Go.
//
// # Concurrency
//
// Impls may be called from any goroutine with any Exec. In a steady state a call allocates nothing:
// scratch comes from the Exec, and arguments reach the workers in pooled memory.
//
// # Errors
//
// The impls rely on validated arguments. They return only errors that wrap
// opregistry.ErrUnsupported.
package flagos
