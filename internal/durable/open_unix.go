//go:build unix

package durable

import "syscall"

// nonBlocking makes opening return at once, even for a named pipe.
const nonBlocking = syscall.O_NONBLOCK

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW
