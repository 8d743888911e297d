// Package runs reports the state of training runs: the run of this process, and runs that left
// their files in a directory.
//
// # Concepts
//
// A Board observes training and keeps the progress of the run and the end of its log in memory. A
// Recorder writes it to the file run.json in the run directory. An Archive reads that file, the
// metrics and the log of every run below a directory, whether the run has finished, was killed or
// continues in another process.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Recorder has a goroutine between the start and the
// end of a run.
//
// # Errors
//
// Errors name the directory or file. Wrong files of one run do not affect the others.
package runs
