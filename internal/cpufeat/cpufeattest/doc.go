// Package cpufeattest runs tests with the kernels of CPUs with fewer features.
//
// Each disables the features of the running machine one by one, the newest first. A disabled
// feature is disabled for the whole process, so tests that use the package must not run in parallel
// with other tests of theirs.
package cpufeattest
