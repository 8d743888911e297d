//go:build !linux && !freebsd

package peer

import (
	"fmt"
	"runtime"
	"time"
)

// CPUTime returns a clock that stops while other programs have the CPU. It shows the CPU time of
// the process.
func CPUTime() (func() time.Duration, error) {
	return nil, fmt.Errorf("CPU time is not read on %s", runtime.GOOS)
}
