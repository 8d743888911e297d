//go:build race

package blas

import (
	"runtime"
	"unsafe"
)

// annotate tells the race detector what the library, which it cannot see, is
// about to read and write.
func annotate(left, right, out *matrix) {
	for _, m := range [...]*matrix{left, right} {
		for i := range m.rows {
			runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(m.row(i, 0, m.cols))), 4*m.cols)
		}
	}
	for i := range out.rows {
		runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(out.row(i, 0, out.cols))), 4*out.cols)
	}
}
