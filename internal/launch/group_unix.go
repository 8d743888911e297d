//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// signalGroup sends a signal to a process group, also to what its processes have started.
func signalGroup(leader int, _ []*exec.Cmd, s syscall.Signal) {
	_ = syscall.Kill(-leader, s) // ESRCH: all have ended
}

// endedBy returns the signal that ended a process.
func endedBy(state *os.ProcessState) (syscall.Signal, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return status.Signal(), true
}
