// Package checktest has what the tests of the catalogue share: small operands, and the check that
// an op refuses the mistakes of its callers by name.
package checktest
