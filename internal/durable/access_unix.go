//go:build unix

package durable

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// access reports why this process may not create files in a directory that exists.
func access(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}
