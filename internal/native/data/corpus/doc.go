// Package corpus reads the documents of files of text: plain files, lines of JSON, columns of
// Parquet, any of them compressed with gzip or zstd.
//
// # Concepts
//
// Find lists the files of a Corpus without reading them: a file, a directory, a glob, or the Go
// standard library's sources. Its method Read passes on the documents in order. A text file is one
// document, a line of JSON is one document, and so is a row of Parquet. Long documents come in
// pieces, so that a file may be larger than memory.
//
// # Errors
//
// Errors name the file, and the line and the byte of a fault within it. A file is never read in
// part without an error, except where MaxBytes asks for it.
package corpus
