// Package split cuts text into the words that tokenizers encode one by one.
//
// Tokenizers describe the cut by a regular expression with look-ahead. Each of the expressions in
// common use has a scanner here, which is written by hand and gives the same words; Find returns
// the scanner for an expression. Tests compare them with the expressions themselves.
package split
