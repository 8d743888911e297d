// Package command is the command line of primus and its composition root: one file a command, and the fx graph that
// wires sources of ops, backends, the op manager, metrics and the trainer.
//
// Exit codes: 0 success, 1 failure, 2 usage, 130 interrupted.
package command
