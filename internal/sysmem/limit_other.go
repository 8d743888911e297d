//go:build !linux && !windows && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package sysmem

import (
	"fmt"
	"runtime"
)

// Read returns the limit of this process.
func Read() (Limit, error) {
	return Limit{}, fmt.Errorf("read the size of memory: not known how on %s", runtime.GOOS)
}
