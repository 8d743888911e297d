//go:build !linux

package sysmem

// PreferHugePages does nothing: the system chooses its pages.
func PreferHugePages([]byte) {}
