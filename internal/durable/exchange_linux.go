package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange swaps two existing paths in one step. The first result is false when
// the kernel or the file system cannot do that.
func exchange(a, b string) (bool, error) {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	return true, err
}
