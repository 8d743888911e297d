//go:build !linux && !freebsd

package main

import (
	"fmt"
	"runtime"

	"github.com/primus-fl/primus/internal/opbench"
)

// cpuTime returns a clock that stops while other programs have the CPU. It shows the CPU time of
// the process.
func cpuTime() (opbench.Clock, error) {
	return nil, fmt.Errorf("CPU time is not read on %s", runtime.GOOS)
}
