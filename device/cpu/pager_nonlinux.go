//go:build !linux

package cpu

func newSystemPager() pager { return systemPager{} }
