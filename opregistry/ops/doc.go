// Package ops is the catalogue of ops: for each op its handle, its argument
// struct, its validation and the specification of what it computes.
//
// # Concepts
//
// Names and mathematics are those of TransformerEngine; ops that it has no name
// for and that training needs (embedding, cross entropy, residual add) follow
// the same conventions. Storage dtypes are f32, bf16, f16 and f64 unless an op
// says otherwise; impls compute in f32 or better and round once on store. Shapes
// are written [rows, cols]; a leading "…" stands for any number of axes that are
// flattened. Operands may be strided views unless an op says "contiguous"; an
// impl that wants contiguous memory declines what is not.
//
// Ops that are plumbing of one vendor's libraries are only declared: Declared lists
// them.
//
// Aliasing is that of package tensor: operands are disjoint, or the same view
// where the op's documentation allows it.
//
// Empty operands (an axis of length 0) are legal and do nothing unless an op
// says otherwise. NaN and Inf propagate as IEEE 754 arithmetic has it. Subnormal numbers
// are kept, with one exception: where an exponential is smaller than 2⁻¹²⁶, as in
// a softmax, a gate or its gradient, an impl may take 0 for it.
//
// Random ops take a seed and an offset and get their bits from RandomBits, so that
// impls agree bit for bit.
//
// Ops that only one vendor's library can answer are declared and have no impl here;
// Declared lists them.
//
// # Concurrency
//
// Handles are immutable. Calls on disjoint operands may run at the same time.
//
// # Errors
//
// Validation returns an *opregistry.ArgError that names op, argument, what was
// given and what was expected, and allocates nothing when all is well.
package ops
