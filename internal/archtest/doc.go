// Package archtest holds the tests of the module's structure: which package may import which, where
// third-party modules may be used, how large a package may be, and a few rules of style that a
// compiler does not check.
//
// # Concepts
//
// The tests parse every Go file of the module themselves, whatever its build constraints, so that
// Go's test cache never holds an outdated answer. Modules nested in the tree, testdata and hidden
// folders are left out. The layers are a list of rules, the most specific folder first; a package
// that no rule covers is an error, so that a new top-level folder needs a decision. A permission
// that no package uses is also an error, so that the table stays true.
//
// Test files are exempt from the layers, because a test may import an oracle from anywhere. The one
// exception is that only cmd imports cmd.
//
// # Concurrency
//
// The package has no state.
//
// # Errors
//
// Each violation is reported with the file, the import and the rule that it breaks.
package archtest
