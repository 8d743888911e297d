package procgroup

import "syscall"

// Attr puts a process into a group, a new one for leader 0, and lets the kernel send it a
// signal when this process ends.
func Attr(leader int, onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: leader, Pdeathsig: onDeath}
}
