//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package cpu

type systemPager = heapPager
