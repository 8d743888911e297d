//go:build !unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// groupAttr returns nothing: there are no process groups.
func groupAttr(int, syscall.Signal) *syscall.SysProcAttr { return nil }

// signalGroup ends the processes; other signals than SIGKILL do not exist.
func signalGroup(_ int, begun []*exec.Cmd, _ syscall.Signal) {
	for _, cmd := range begun {
		_ = cmd.Process.Kill() // it has ended
	}
}

// endedBy returns no signal.
func endedBy(*os.ProcessState) (syscall.Signal, bool) { return 0, false }
