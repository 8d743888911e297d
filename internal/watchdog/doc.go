// Package watchdog finds out that a run hangs, and where.
//
// # Concepts
//
// A run marks its phases in a backend.Progress. A phase hangs when it has lasted longer than a
// limit: a floor that the user sets, or ten times as long as the phase usually takes, whichever is
// more. What is usual is the median of its last durations, which a few slow ones do not move.
//
// # Concurrency
//
// The watchdog has a goroutine of its own and only reads what the run marks.
package watchdog
