//go:build unix

package durable

import "syscall"

// nonBlocking makes an open return at once, also that of a named pipe.
const nonBlocking = syscall.O_NONBLOCK
