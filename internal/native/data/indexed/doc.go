// Package indexed reads and writes Megatron's indexed datasets: a file PREFIX.bin of token ids, one
// sequence after the other, and a file PREFIX.idx that says where each begins.
//
// # Format
//
// All numbers are little-endian. The index is
//
//	 0  magic      9 bytes "MMIDIDX\0\0"
//	 9  version    u64, 1
//	17  dtype      u8: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64, 7 float32, 8 uint16
//	18  sequences  u64, n
//	26  documents  u64, d+1
//	34  lengths    i32 [n], tokens of each sequence
//	    pointers   i64 [n], the byte of the .bin with which each begins
//	    ends       i64 [d+1], 0 and the number of sequences up to the end of each document
//
// Package indexed writes one sequence per document, without gaps. Source: Megatron-LM,
// megatron/core/datasets/indexed_dataset.py.
//
// # Errors
//
// Errors name the file and the byte that is wrong, what was found there and what is wanted.
package indexed
