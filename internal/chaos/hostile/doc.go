//go:build linux

// Command hostile trains with plugins that misbehave, and checks what docs/plugins.md promises of
// them.
//
// # Concepts
//
// A case is a phase of a plugin's life, a misdeed in it, when it shows, and whether the plugin is
// isolated. The cases are all that make sense of these four; what is expected of each follows from
// rules (matrix.go). One library (library/hostile.c) commits all misdeeds, as its environment says.
// Each case is a run of a tiny model in a process of its own, whose losses are compared with those
// of a run without plugins, bit for bit.
//
// The processes are this program in the role of primus.
package main
