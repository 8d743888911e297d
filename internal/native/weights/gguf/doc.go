// Package gguf writes and reads GGUF, the file format of llama.cpp: values by key, then named
// tensors.
//
// # Concepts
//
// A file is, little-endian throughout,
//
//	"GGUF" | u32 version 3 | u64 tensors | u64 values | values | descriptions of tensors | data
//
// A tensor lists its axes from the fastest to the slowest, the reverse of a Shape, and its data
// begins at a multiple of 32 bytes. Elements are f32, f16, bf16 or Q8_0: blocks of 32 numbers, an
// f16 scale and 32 signed bytes.
//
// # Errors
//
// Errors begin with the package and name the key or the tensor. A file that breaks the format is an
// error of Read, never a panic.
//
// The format is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
package gguf
