//go:build unix

package runs

import (
	"errors"
	"syscall"
)

// alive reports whether a process of this machine exists.
func alive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
