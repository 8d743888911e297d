//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup gives a command its own process group. When its time is over, the keeper is asked to end
// its processes; without a keeper the group is killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if runtime.GOOS == "linux" {
			return cmd.Process.Signal(unix.SIGTERM)
		}
		return unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
}

// endedBy returns the signal that ended a process, "" if none did.
func endedBy(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	return fmt.Sprintf("%s (%v)", unix.SignalName(status.Signal()), status.Signal())
}

// takeStdout returns the standard output of this process as another file. From then on libraries
// print to the standard error instead.
func takeStdout() (*os.File, error) {
	fd, err := unix.Dup(unix.Stdout)
	if err != nil {
		return nil, fmt.Errorf("sandbox: keep the standard output: %w", err)
	}
	unix.CloseOnExec(fd)
	if err := unix.Dup2(unix.Stderr, unix.Stdout); err != nil {
		return nil, fmt.Errorf("sandbox: send what a plugin prints to the standard error: %w", err)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}
