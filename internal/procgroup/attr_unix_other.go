//go:build unix && !linux

package procgroup

import "syscall"

// Attr puts a process into a group, a new one for leader 0.
func Attr(leader int, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: leader}
}
