//go:build race

package fused

import (
	"runtime"
	"unsafe"
)

const racing = true

// raceRead and raceWrite tell the race detector what assembly is about to touch.

func raceRead(all ...[]float32) {
	for _, s := range all {
		if len(s) > 0 {
			runtime.RaceReadRange(unsafe.Pointer(&s[0]), 4*len(s))
		}
	}
}

func raceWrite(all ...[]float32) {
	for _, s := range all {
		if len(s) > 0 {
			runtime.RaceWriteRange(unsafe.Pointer(&s[0]), 4*len(s))
		}
	}
}
