//go:build linux

// Command chaos attacks training runs and checks what docs/explanation/reliability.md promises
// about them.
//
// # Concepts
//
// A drill is one way to attack a run: kill it, fill its disk, damage its checkpoints. Each try of a
// drill starts real processes of primus on a tiny model, attacks at moments and with faults that a
// seed chooses, and compares the end with that of an undisturbed run: its losses and weights, bit
// for bit. A try that breaks a promise keeps its directory and prints how to repeat it.
//
// The command plugins trains with plugins that misbehave, and checks what
// docs/reference/plugins.md promises about them. A case is a phase of a plugin's life, a misdeed in
// it, the time of the misdeed, and whether the plugin is isolated; its expected outcome follows
// from rules (plugins_matrix.go). One library (library/hostile.c) commits all misdeeds, as its
// environment says. The losses of each run are compared with those of a run without plugins, bit
// for bit.
//
// The processes are this program in another role (roles.go): primus with an additional vendor,
// whose impls are those of flagos until a fault is injected into a call (faults.go).
package main
