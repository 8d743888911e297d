//go:build unix

package primustest

import (
	"syscall"
	"time"
)

// cpuTime returns the time of the CPU that the process has used, outside the kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
