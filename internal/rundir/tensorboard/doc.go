// Package tensorboard writes scalars as event files that TensorBoard reads.
//
// # Concepts
//
// An event file is a series of records: the length of the data as u64, a checksum of it, the data,
// and a checksum of that, all little-endian. A checksum is a CRC-32 (Castagnoli), rotated right by
// 15 bits, plus 0xa282ead8. The data is an Event in protocol buffer encoding. The first event holds
// the version of the format. The second one marks the start of a session at a step, which makes
// TensorBoard discard the values of this and later steps in earlier files of the directory. All
// others hold the scalars of a step. Source: tensorflow/core/lib/io/record_writer.h and
// tensorflow/core/util/event.proto, version 2.
//
// # Concurrency
//
// A Writer belongs to one goroutine.
//
// # Errors
//
// Errors are those of the file system, with the name of the file. After a failed write, which may
// leave part of a record in the file, every further write returns the same error.
package tensorboard
