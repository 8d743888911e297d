// Package runs tells how runs of training stand: the one of this process as it goes on, and those that left their files in
// a directory.
//
// # Concepts
//
// A Board is an observer of training and keeps the progress of its run in memory, the end of its log included. A Recorder
// writes the same to the file run.json of the run directory. An Archive reads that file, the metrics and the log of every
// run below a directory, whether the run is finished, was killed or goes on in another process.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Recorder has a goroutine between the start and the end of a run.
//
// # Errors
//
// Errors name the directory or file. What is wrong in the files of one run hides no other run.
package runs
