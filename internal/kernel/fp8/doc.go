// Package fp8 has the inner loops of quantisation: the largest magnitudes of blocks, fp8 from and
// to float32, and from bfloat16, with a scale per block or per element, and fp4 from and to float32
// by tables.
//
// Every version of a function gives the same bits, except in a NaN: a product with a scale is
// rounded to float32, and then once to fp8, to nearest with ties to even.
package fp8
