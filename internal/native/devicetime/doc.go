// Package devicetime measures what a device does in a run: a Clock is told when steps begin and
// end, stands around the calls of ops, and gives the time of each command to the op that queued it.
package devicetime
