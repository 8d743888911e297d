//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package cpu

import "unsafe"

func bindToNode(unsafe.Pointer, uint64, int) error { return errNoBinding }
