// Package host turns operands into slices of host memory, cuts ops into parts and lets kernels for
// f32 work on bf16 and f16. It is what the families of flagos share.
//
// An impl first views its operands with Views, which keeps the first reason to decline the call.
// It then cuts its rows with a Cut, by the shape of the op alone. Where operands are narrow, a Tile
// goes through the rows of a part a few at a time, and the kernel works on widened copies.
package host
