// Package flagos holds the default impls of the ops that training spends its time
// in, portable and fast on the processors of a host.
//
// # Concepts
//
// Source returns the impls, all of kind flagos with the id "default.flagos". They
// serve operands of f32, bf16 and f16 in host memory and decline everything else,
// before anything is written, with an error that wraps opregistry.ErrUnsupported.
// Operands may be views whose last axis is dense; views without one pitch for all
// rows are declined, too, where an op says "rows".
//
// All arithmetic is in f32 or better. Rows of bf16 and f16 are widened, a few at a
// time, to scratch in the first-level cache, where the kernels for f32 work on them,
// and results are rounded once on their way back.
//
// An op is cut into parts by its shape alone and each part is worked off in rows
// or blocks that stay in the caches. Sums over parts are added up in the order of
// the parts; parts of a product, which is cut for its workers, too, share no sum.
// So a result is the same bit for bit for any number of workers, on one machine;
// machines with other vector instructions differ in the last bits.
// The inner loops are those of internal/simd and of internal/fused below this
// package, each with a form in plain Go.
//
// # Concurrency
//
// Impls may be called from any goroutine with any Exec. In a steady state a call
// allocates nothing: scratch comes from the Exec, arguments travel to the workers
// in pooled memory.
//
// # Errors
//
// Arguments are taken as validated. The impls return errors that wrap
// opregistry.ErrUnsupported and no others, except that fused_rope returns an
// *opregistry.ArgError for packed sequences longer than the table of angles,
// which only a look at the lengths can find.
package flagos
