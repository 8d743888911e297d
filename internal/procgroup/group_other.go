//go:build !unix

package procgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Attr returns nothing: there are no process groups.
func Attr(int, syscall.Signal) *syscall.SysProcAttr { return nil }

// Signal ends the processes; other signals than SIGKILL do not exist.
func Signal(_ int, begun []*exec.Cmd, _ syscall.Signal) {
	for _, cmd := range begun {
		_ = cmd.Process.Kill() // it has ended
	}
}

// EndedBy returns no signal.
func EndedBy(*os.ProcessState) (syscall.Signal, bool) { return 0, false }
