//go:build unix

package settings

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign reports whether a file belongs to neither this user nor root.
func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}
