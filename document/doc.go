// Package document holds configuration documents of any file format, as trees of values that
// remember where they were written.
//
// # Concepts
//
// A document is a tree of [Value] and [Map]. It keeps the order of keys, the difference between 1
// and 1.0, and for every value its [Origin]: file, line and column, the environment variables it
// came from, or the command line token. A [Loader] reads one file format and a [Renderer] also
// writes it; [Formats] is a set of them, which picks one by the ending of a file name. Package
// formats has YAML, JSON and TOML. [Substitute] puts environment variables in, [ParseOverrides]
// reads a map from command line tokens, [FromGo] and [Builder] make values from Go data.
//
// [Merge] puts one map over another; a value remembers what it replaced ([Value.Replaced]). [Diff]
// compares two maps.
//
// [Decode] fills a struct from a [Map] and reports every wrong type with key path, value and
// origin.
//
// The package does not know what keys mean: runtime/config does for experiments.
//
// # Concurrency
//
// [Value] and [Map] are immutable and safe for concurrent use, a [Builder] is not.
//
// # Errors
//
// Problems in documents are [*Error] values, several of them joined where more than one was found,
// so use errors.Is and errors.AsType. Sentinels: [ErrUsage] for command line tokens, [ErrCycle],
// [ErrUnsetVariable]. What is legal and probably a mistake is a [Warning]. No input makes the
// package panic.
package document
