//go:build !linux

package cpu

// threadID returns the same for all threads: there is one device to choose from.
func threadID() int { return 0 }
