//go:build linux || freebsd

package main

import (
	"time"

	"github.com/primus-fl/primus/internal/opbench"
	"golang.org/x/sys/unix"
)

// cpuTime returns a clock that stops while other programs have the CPU. It shows the CPU time of
// the process.
func cpuTime() (opbench.Clock, error) {
	read := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
			panic("BUG: the clock of the process could be read before: " + err.Error())
		}
		return time.Duration(t.Nano())
	}
	var t unix.Timespec
	return read, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
}
