// Package layers holds the inner loops of the families that have few of them: norms, rotary
// embeddings, the router of a mixture of experts, linear attention by the delta rule, and the steps
// of optimizers.
//
// Each function reads every operand from memory once and writes every result once. It has a version
// in plain Go, which is always compiled, and on amd64 versions in assembly for AVX2 with FMA, for
// AVX-512, or for both from one source where AVX2 is slower than memory. They agree within a few
// units in the last place; one machine always uses the same version, so results repeat bit for bit.
// The build tag noasm leaves the assembly out.
//
// A result of a norm or of a rotation may be the same slice as an operand; slices that overlap in
// another way are not supported. A slice that is too short panics: callers check the lengths. The
// functions keep no state and may run at the same time on disjoint results.
//
// The delta rule updates a state, which is a matrix, at each position, and reads it. The state is
// cut into blocks of DeltaColumns columns, each of which stays in the first-level cache while it
// goes through many positions.
package layers
