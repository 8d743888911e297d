//go:build !linux

package cpu

// threadID returns the same number for all threads: there is only one device to choose from.
func threadID() int { return 0 }
