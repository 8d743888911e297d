// Package rundir owns the directory that a training run writes to.
//
// # Concepts
//
// Open creates the directory, locks it, so that two runs cannot mix their files,
// and finds out whether it can be written. What a run writes there as a whole
// goes through WriteFile: a reader sees the old file or the new one.
//
// The metrics file holds one JSON object a line, a line a step. A line is written
// by one call of the operating system, so that a kill can tear only the last one.
// Truncate prepares the file for a run that continues after a step: it keeps the
// whole lines up to that step and drops the rest, which the run writes again.
//
// PlotLoss draws the losses of these records as a PNG; Plot puts it into the
// directory. The log file takes whatever the run logs.
//
// # Concurrency
//
// Path, WriteFile, Warnings and the writer that Log returns may be used from any
// goroutine. The metrics belong to one goroutine: Truncate, Append, Records, Sync,
// Plot and Close.
//
// # Errors
//
// Errors name the path, what was given and what to do. A directory that another
// run holds gives an error that wraps *durable.LockedError and names that process.
package rundir
