//go:build !unix

package runs

import "os"

// alive reports whether a process of this machine exists.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
