// Package preflight is the commands that check a machine, and all machines of a job, before a run.
//
// # Concepts
//
// [Collect] makes the [Report] of this machine: checks, each ok, a warning or a failure with what
// to do about it, and facts that should be the same everywhere. Under a launcher, [Gather] brings
// the reports of all ranks to rank 0 and lets every host try to reach every other one; [Compare]
// finds the ranks that differ from the rest.
//
// A [Machine] says where files and tools are. A check is left out if the system does not report
// what it needs.
package preflight
