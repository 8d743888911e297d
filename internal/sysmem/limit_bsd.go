//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sysmem

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Read returns the limit of this process.
func Read() (Limit, error) {
	name := "hw.physmem"
	switch runtime.GOOS {
	case "darwin":
		name = "hw.memsize"
	case "netbsd", "openbsd":
		name = "hw.physmem64"
	}
	bytes, err := unix.SysctlUint64(name)
	if err != nil {
		return Limit{}, fmt.Errorf("read the size of memory: %s: %w", name, err)
	}
	return Limit{bytes, name}, nil
}
