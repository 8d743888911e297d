// Package isa decides which instruction sets the kernels of a process use.
//
// A user can name one; else it is the newest that the CPU has, except for products of bfloat16: the
// instruction for them is twice as fast as products of float32 on some CPUs and half as fast on
// others, so both are measured, once for each CPU, microcode and version of the program.
package isa
