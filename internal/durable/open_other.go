//go:build !unix

package durable

// nonBlocking is zero, since opening a file does not block on this system.
const nonBlocking = 0

// noFollow is zero, since this system has no such flag.
const noFollow = 0
