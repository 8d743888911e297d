// Package command is the command line of primus and its composition root.
//
// # Concepts
//
// Each noun of the command line has a package: train, config, ops, policy, plugins, patches,
// backends, devices, benchmark, serve and fleet. A command turns flags into an options struct and
// calls a plain function; what it needs comes from an fx graph of op sources, backends, op manager
// and device, which the package internal/graph composes and to which internal/service adds metrics,
// the HTTP service and the fleet. Results go to Streams.Out, logs, progress and errors to
// Streams.Err.
//
// Flags that were not given may come from the environment, as PRIMUS_<FLAG>, and from primus.yaml:
// see the package settings and `primus config cli`. PRIMUS_OPENBLAS, PRIMUS_ONEDNN, PRIMUS_OPENCL,
// PRIMUS_CLBLAST and PRIMUS_MPI name the files of these libraries to load instead of the system's.
//
// # Concurrency
//
// Main and the commands of NewRoot are for one goroutine. The first interrupt or termination signal
// ends the context of the command, and the second one ends the process.
//
// # Errors
//
// A command returns one error, which Main prints once. The exit codes are in
// docs/reference/exit-codes.md.
package command
