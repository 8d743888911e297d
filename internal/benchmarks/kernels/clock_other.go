//go:build !linux && !freebsd

package main

import (
	"fmt"
	"runtime"
)

// cpuTime is a clock that stops while other programs have the CPU.
func cpuTime() (clock, error) {
	return nil, fmt.Errorf("-cpu: CPU time is not read on %s", runtime.GOOS)
}
