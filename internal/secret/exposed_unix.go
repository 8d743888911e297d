//go:build unix

package secret

import (
	"io/fs"
	"os"
	"syscall"
)

// exposed reports whether users other than the owner of a file have access to it.
func exposed(info fs.FileInfo) bool {
	others := fs.FileMode(0o077)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		others = 0o007
	}
	return info.Mode().Perm()&others != 0
}
