//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/primus-fl/primus/internal/procgroup"
)

// ownGroup gives a command its own process group. When its time is over, the keeper is asked to end
// its processes; without a keeper the group is killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = procgroup.Attr(0, 0)
	cmd.Cancel = func() error {
		if runtime.GOOS == "linux" {
			return cmd.Process.Signal(unix.SIGTERM)
		}
		procgroup.Signal(cmd.Process.Pid, nil, unix.SIGKILL)
		return nil
	}
}

// endedBy returns the signal that ended a process, "" if none did.
func endedBy(state *os.ProcessState) string {
	if s, ok := procgroup.EndedBy(state); ok {
		return fmt.Sprintf("%s (%v)", unix.SignalName(s), s)
	}
	return ""
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

// catchStdout makes the standard output of this process a pipe, and returns what reads from it all
// that libraries have printed, without waiting for more. A library that prints more than the pipe
// holds does not wait either: the rest is lost.
func catchStdout() (read func() []byte, err error) {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return nil, fmt.Errorf("sandbox: catch what a plugin prints: %w", err)
	}
	for _, fd := range ends {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, fmt.Errorf("sandbox: catch what a plugin prints: %w", err)
		}
	}
	if err := unix.Dup2(ends[1], unix.Stdout); err != nil {
		return nil, fmt.Errorf("sandbox: catch what a plugin prints: %w", err)
	}
	return func() (all []byte) {
		var part [4096]byte
		for {
			n, err := unix.Read(ends[0], part[:])
			if err != nil || n <= 0 {
				return all
			}
			all = append(all, part[:n]...)
		}
	}, unix.Close(ends[1])
}
