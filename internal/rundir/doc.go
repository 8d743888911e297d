// Package rundir owns the directory that a training run writes to.
//
// # Concepts
//
// A Location is the four parts of <workspace>/<work_group>/<user_name>/<exp_name>. Open creates the
// directory, locks it, so that two runs cannot mix their files, and finds out whether it can be
// written. Files that are written as a whole are written by WriteFile: a reader sees the old file
// or the new one.
//
// Metrics is the run's metrics.jsonl: one JSON object per line, one line per step. A line is
// written by one call of the operating system, so that a kill can tear only the last one. Opening
// the file for a resume at step s keeps the whole lines up to s and drops the rest, which the
// resumed run writes again.
//
// PlotLoss draws the losses of these records as a PNG.
//
// # Concurrency
//
// Dir is safe for concurrent use. Metrics belongs to one goroutine.
//
// # Errors
//
// Errors name the key or the path, what was given and what to do. A directory that another run
// holds gives an error that wraps *durable.LockedError and names that process.
package rundir
