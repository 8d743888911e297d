// Package check has what the functions of Schema.Check share: reading elements of operands, and the
// names and numbers of errors.
package check
