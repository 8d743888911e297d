// Package launch starts the processes of a framework that is not compiled in, watches them and ends
// them.
//
// # Concepts
//
// A Job says how a framework is started: a Python program, its environment and its files. Options
// say where and by what. NewPlan makes the exact commands for this machine from both, without
// starting anything; Run carries out a plan.
//
// The processes of a plan form one process group. Each line that they write goes to the file of its
// rank, to the terminal if that shows the rank, and to Settings.Line. When a rank fails, the others
// are ended, and the last lines and the Python traceback of that rank are the error. When the
// context ends, its signal is forwarded once, and processes that are left after the grace period
// are killed. On Linux no process outlives the one that called Run, however that ends.
//
// # Concurrency
//
// Plans are values. Settings.Line is called by one goroutine at a time.
//
// # Errors
//
// The failure of a process is a *Failure. Invalid options are reported together, each with its
// flag.
package launch
