// Package primustest helps the tests of several packages: with buffers that are read while they are
// written, with certificates, with recorded behaviour, and with Python.
//
// # Concepts
//
// A Buffer collects the output of a program while a test reads it. An Authority signs the
// certificates of servers and clients on this machine and writes them to files. Recorded finds
// files that were recorded from other programs, and EachLine and Unpack read them.
//
// A Program is a child whose output a test reads while it runs. A Wait, such as those of a Program,
// has no fixed time: it goes on as long as the program does, and one that fails says what the
// program has printed and where its goroutines are. Cases says how many of many similar cases a
// test tries, and Cost bounds what reading an input costs.
//
// # Concurrency
//
// A Buffer may be used from many goroutines, an Authority from one at a time.
package primustest
