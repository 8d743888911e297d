// Package report writes what people read about training runs: the plan of a dry run, the progress
// of a run on a terminal and in its log, and the summary at its end.
package report
