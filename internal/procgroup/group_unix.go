//go:build unix

package procgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Signal sends a signal to a process group, also to what its processes have started.
func Signal(leader int, _ []*exec.Cmd, s syscall.Signal) {
	_ = syscall.Kill(-leader, s) // ESRCH: all have ended
}

// EndedBy returns the signal that ended a process.
func EndedBy(state *os.ProcessState) (syscall.Signal, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return status.Signal(), true
}
