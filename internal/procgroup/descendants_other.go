//go:build !linux

package procgroup

// KillDescendants does nothing: the system has no list of the processes that a process has started.
func KillDescendants() {}
