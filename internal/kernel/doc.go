// Package kernel has what the kernels share. The packages below it are the inner loops of the fast
// impls, one for each family, and this text says how one is written.
//
// # Files
//
// For a function f of a family, f.go has the exported function with its specification: it checks
// lengths, reports to package race what the assembly will touch, and calls the version for the
// machine. f_generic.go has the version in plain Go, which is always compiled and is what the
// others are tested against. A file for amd64 asks package cpufeat which assembly may run and
// declares it; noasm.go stands in for that file on other machines and with the build tag noasm.
//
// # Assembly for two widths
//
// A header, such as vector_amd64.h, holds the loops in terms of a vector's width: LANES elements in
// registers V0 and up, MASK, TAIL and PUTTAIL for the elements that are left after whole vectors.
// A .s file for AVX2 and one for AVX-512 define these, the names of the functions and the
// instructions that differ, and include the header. A header begins with a list of what it needs.
//
// What only one width can do stays in its .s file. It is not put between #ifdef and #endif: the
// assembler expands macros there, too, and gives up after a hundred of them. go vet does not look
// into headers, so the offsets of arguments are checked by nothing but the tests.
//
// # Tests
//
// A kernel is compared with its formula in float64 for every length up to a few vectors, at every
// alignment, between guards that it must not touch, on every set of instructions that the machine
// has, and for NaN, infinities and the ends of its range. kerneltest has what that takes. A claim
// about speed comes with a benchmark before and after.
package kernel
