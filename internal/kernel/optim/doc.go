// Package optim holds the steps of optimizers over float32: each reads every operand from memory
// once and writes every result once.
//
// A step has a version in plain Go, which is always compiled, and on amd64 one in assembly for AVX2
// with FMA, which takes whole vectors and leaves the rest to plain Go; memory is slower than both
// AVX2 and AVX-512. They agree within a few units in the last place; one machine always uses the
// same version, so results repeat bit for bit. The build tag noasm leaves the assembly out.
//
// The slices have equal lengths, a shorter one panics. They must not overlap. The functions keep no
// state and may run at the same time on disjoint slices.
package optim
