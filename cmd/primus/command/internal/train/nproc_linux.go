package train

import "syscall"

// dependent are the attributes of a process that the kernel ends with this one, and that gets its
// signals from this one and not from the terminal.
func dependent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
