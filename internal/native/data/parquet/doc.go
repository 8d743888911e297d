// Package parquet reads columns of text of Parquet files, page by page.
//
// # Concepts
//
// Open reads the description at the end of a file. Texts passes on the values of one column of byte
// arrays, row by row; the column may lie in structures, but not in lists. A page is in memory at a
// time, with the dictionary of its row group. Pages of both versions are read, with the encodings
// PLAIN, RLE_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, without compression or with
// Snappy, gzip or zstd. Checksums of pages are compared where a file has them.
//
// # Errors
//
// Errors name the byte of the file at which a page begins. What is not supported is named. No
// content of a file causes a panic, and the description of a file and each page have a budget: more
// is a *meter.Error. The end of the context ends the work in the middle of a page, too.
//
// Source: Apache Parquet, format 2.11; Apache Thrift, compact protocol.
package parquet
