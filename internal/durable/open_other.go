//go:build !unix

package durable

// nonBlocking is zero, since opening a file does not block on this system.
const nonBlocking = 0
