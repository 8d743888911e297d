// Package ops is the catalogue of ops: for each op its handle, its argument struct, its validation
// and the specification of what it computes.
//
// # Concepts
//
// Names and mathematics are those of TransformerEngine. Ops that training needs and
// TransformerEngine does not name (embedding, cross entropy, residual add) follow the same
// conventions. Storage dtypes are f32, bf16, f16 and f64 unless an op says otherwise; impls compute
// in f32 or better and round once on store. Shapes are written [rows, cols]; a leading "…" stands
// for any number of axes that are flattened. Operands may be strided views unless an op says
// "contiguous"; an impl that needs contiguous memory declines other operands.
//
// Package foreign lists the ops of TransformerEngine-FL that are not in the catalogue.
//
// Aliasing is that of package tensor: operands are disjoint, or the same view where the op's
// documentation allows it.
//
// Empty operands (an axis of length 0) are legal, and an op does nothing with them unless it says
// otherwise. NaN and Inf propagate as in IEEE 754 arithmetic. Subnormal numbers are kept, with one
// exception: where an exponential is smaller than 2⁻¹²⁶, as in a softmax, a gate or its gradient,
// an impl may use 0 instead.
//
// Random ops take a seed and an offset and get their bits from random.Bits, so that impls agree bit
// for bit.
//
// # Concurrency
//
// Handles are immutable. Calls on disjoint operands may run at the same time.
//
// # Errors
//
// Validation returns an *opregistry.ArgError that names the op, the argument, what was given and
// what was expected. It allocates nothing when the arguments are valid.
package ops
