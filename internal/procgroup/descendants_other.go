//go:build !linux

package procgroup

// KillDescendants does nothing: the system has no list of the processes that a process has started.
func KillDescendants() {}

// KillMarked does nothing: the system does not show the environment of a process.
func KillMarked(string, int) int { return 0 }
