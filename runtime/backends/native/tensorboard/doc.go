// Package tensorboard writes scalars as event files that TensorBoard reads.
//
// # Concepts
//
// An event file is a series of records: the length of the data as u64, a checksum of it, the data, and a checksum of that,
// all little-endian. A checksum is a CRC-32 (Castagnoli), rotated right by 15 bits, plus 0xa282ead8. The data is an Event
// in protocol buffer encoding. The first event says the version of the format; the second one that a session starts at a
// step, upon which TensorBoard forgets what earlier files of the directory say about this and later steps; all others hold
// the scalars of a step. Source: tensorflow/core/lib/io/record_writer.h and tensorflow/core/util/event.proto, version 2.
//
// # Concurrency
//
// A Writer belongs to one goroutine.
//
// # Errors
//
// What the file system reports, with the name of the file. After a failed write, of which the file may hold a part, every
// further one is the same error.
package tensorboard
