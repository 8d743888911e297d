// Package plaintext formats what people read in a terminal or a log: tables, indented text, counts
// and text of other programs without control characters.
package plaintext
