// Package gemm has the ops that multiply matrices: one product at a time, and groups of products
// whose sizes differ, as the experts of a mixture have them.
//
// Package ops says what holds for every op of the catalogue.
package gemm
