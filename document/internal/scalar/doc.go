// Package scalar turns the text of one scalar into a typed value.
//
// # Concepts
//
// Three sources of configuration text have three typing rules, and mixing them up changes
// experiments: a YAML 1.1 plain scalar ([YAML], [Tagged]), text produced by substituting an
// environment variable ([Env]) and the value of a command line override ([Override]). `1e5` for
// instance is text in YAML 1.1 and a number in the other two.
//
// Results are one of: nil, bool, int64, [*math/big.Int] (only when int64 is too small), float64,
// string, []byte, [Date] and [Time].
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
//
// # Errors
//
// Text that looks like a typed value but is none, such as the date 2025-13-45, is an error without
// position; the caller knows where the text came from and adds it.
package scalar
