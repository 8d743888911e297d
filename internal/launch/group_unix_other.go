//go:build unix && !linux

package launch

import "syscall"

// groupAttr puts a process into a group, a new one for leader 0.
func groupAttr(leader int, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: leader}
}
