// Package primustest holds what the tests of several packages of the program need: text
// that is read while it is written, and certificates.
//
// # Concepts
//
// A Buffer takes what a program prints while a test looks at it. An Authority signs the
// certificates of servers and clients on this machine and writes them to files.
//
// # Concurrency
//
// A Buffer may be used from many goroutines, an Authority from one at a time.
package primustest
