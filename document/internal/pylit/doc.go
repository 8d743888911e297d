// Package pylit reads the Python literals that users write on command lines, such as [1, 2] or
// {'k': None}.
//
// # Concepts
//
// [Parse] accepts what ast.literal_eval of Python 3 accepts, without evaluating anything: strings
// with their prefixes and escapes, bytes, numbers, True, False, None, lists, tuples, sets and
// dicts. Complex numbers, the ellipsis and \N{...} escapes are refused because no configuration can
// hold or needs them.
//
// Results are nil, bool, int64, [*math/big.Int], float64, string, []byte, [List], [Tuple]
// and [Dict].
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
//
// # Errors
//
// [ErrSyntax] means the text is no literal and may be meant as plain text; [ErrUnhashable] means it
// is a literal that can have no value, such as a dict with a list as key.
package pylit
