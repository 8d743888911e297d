// Package plaintext formats text for terminals and logs: tables, indented text, counts, and text of
// other programs without control characters.
package plaintext
