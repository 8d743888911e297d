//go:build race

package simd

import (
	"runtime"
	"unsafe"
)

// raceRead and raceWrite tell the race detector what assembly is about to touch.

func raceRead[T float32 | uint16](s []T) {
	if len(s) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&s[0]), int(unsafe.Sizeof(s[0]))*len(s))
	}
}

func raceReadRows(x []float32, rows, cols, pitch int) {
	for r := range rows {
		raceRead(x[r*pitch:][:cols])
	}
}

func raceWrite[T float32 | float64 | uint16](s []T) {
	if len(s) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
	}
}

func raceTile(t *Tile) {
	if t.K > 0 {
		if t.AStep == 1 {
			for r := range t.Rows {
				raceRead(t.A[r*t.ARow:][:t.K])
			}
		}
		raceRead(t.B[:t.K])
	}
	for r := range t.Rows {
		c := t.C[r*t.CRow:][:t.Cols]
		if t.Beta != 0 {
			raceRead(c)
		}
		raceWrite(c)
	}
}
