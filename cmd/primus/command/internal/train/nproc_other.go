//go:build !linux

package train

import "syscall"

// dependent are the attributes of a process that this one starts.
func dependent() *syscall.SysProcAttr { return nil }
