// Package safetensors reads and writes the safetensors file format: named tensors of fixed element
// types after a JSON header.
//
// # Concepts
//
// A file is
//
//	u64 little-endian n | n bytes of JSON | the data of the tensors
//
// The JSON object maps each tensor's name to its dtype, its shape and the range of its bytes in the
// data part; the key __metadata__ maps strings to strings. Elements lie in row-major order,
// little-endian. The ranges cover the data part exactly: no holes, no overlap, nothing after the
// last one.
//
// Write lays the tensors out by falling element size, then by name, and pads the header with spaces
// to a multiple of 8 bytes, so that every tensor is aligned to its element size. The header lists
// the names in sorted order. Equal entries give equal bytes.
//
// An Entry borrows memory and is written straight from it; a file is never built in memory. Open
// reads only the header and checks it against the size of the file.
//
// The format is for little-endian machines; on others Write and Open return errors.
//
// # Concurrency
//
// A File may be read from several goroutines at once until Close. Write holds no state.
//
// # Errors
//
// A file that breaks the format gives a *FormatError with the file, the tensor, what was found and
// what the format wants. Asking for a tensor that is not there, or for another dtype or shape than
// the file has, gives a *MismatchError. Errors of the operating system are wrapped.
//
// The format is described at https://github.com/huggingface/safetensors.
package safetensors
