// Package archtest holds the tests that keep the house in order: who may import
// whom, where third-party modules may be used, and a few rules of style that a
// compiler does not know.
//
// # Concepts
//
// The tests parse every Go file of the module themselves, whatever its build
// constraints, so that the answer is never one that Go's test cache kept. Modules
// nested in the tree, testdata and hidden folders are left out. The layers are a
// list of rules, the most particular first; a package that no rule covers is an
// error, so that a new top-level folder is a decision.
//
// Test files are exempt from the layers, because a test may bring an oracle from
// anywhere, except that nothing but cmd imports cmd.
//
// # Concurrency
//
// The package has no state.
//
// # Errors
//
// Each violation is reported with file, import and the rule that it breaks.
package archtest
