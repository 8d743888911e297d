//go:build unix

package plugin

import (
	"io/fs"
	"os"
	"syscall"
)

// trustedOwner reports whether a file belongs to root or to this user.
func trustedOwner(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
