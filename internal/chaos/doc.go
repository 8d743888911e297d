//go:build linux

// Command chaos attacks training runs and checks what docs/reliability.md promises of them.
//
// # Concepts
//
// A drill is one way to attack a run: kill it, fill its disk, damage its checkpoints. Each try of a drill starts real
// processes of primus on a tiny model, at moments and with faults that a seed chooses, and compares the end with a run that
// nobody disturbed: its losses and weights, bit for bit. A try that breaks a promise keeps its directory and prints how to
// repeat it.
//
// The processes are this program in another role (roles.go): primus with one vendor more, whose impls are those of flagos
// until a fault is injected into a call (faults.go).
package main
