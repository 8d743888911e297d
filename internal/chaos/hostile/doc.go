//go:build linux

// Command hostile trains with plugins that misbehave, and checks what docs/plugins.md promises
// about them.
//
// # Concepts
//
// A case is a phase of a plugin's life, a misdeed in it, the time of the misdeed, and whether the
// plugin is isolated. There is a case for each combination that makes sense; its expected outcome
// follows from rules (matrix.go). One library (library/hostile.c) commits all misdeeds, as its
// environment says. Each case is a run of a tiny model in its own process, whose losses are
// compared with those of a run without plugins, bit for bit.
//
// The processes are this program in the role of primus.
package main
