//go:build !unix

package durable

// nonBlocking is nothing: files do not block here when they are opened.
const nonBlocking = 0
