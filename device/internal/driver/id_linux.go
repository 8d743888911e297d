package driver

import "golang.org/x/sys/unix"

// id returns the number of the calling OS thread.
func id() int { return unix.Gettid() }
