//go:build !linux

package primustest

// family returns the process.
func family(pid int) []int { return []int{pid} }
