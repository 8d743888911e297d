// Package launch starts the processes of a framework that is not compiled in, watches them and ends
// them.
//
// # Concepts
//
// A Job says what a framework wants to be started with: a Python program, its environment and its
// files. Options say where and how. NewPlan makes the exact commands of this machine from both and
// starts nothing; Run carries a plan out.
//
// The processes of a plan form one process group. Each line that they write goes to the file of its
// rank, to the terminal when that shows the rank, and to Settings.Line. The first rank that fails
// ends the others, and its last lines and Python traceback are the error. When the context ends,
// its signal is forwarded once, and what is left after the grace period is killed. On Linux no
// process outlives the one that called Run, however that ends.
//
// # Concurrency
//
// Plans are values. Settings.Line is called by one goroutine at a time.
//
// # Errors
//
// A process that fails is a *Failure. Options that cannot be used are reported together, each with
// the flag that sets it.
package launch
