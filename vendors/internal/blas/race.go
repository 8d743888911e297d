//go:build race

package blas

import "runtime"

// annotate tells the race detector what the library, which it cannot see, is about to read and
// write.
func annotate(left, right, out *matrix) {
	for _, m := range [...]*matrix{left, right} {
		for i := range m.rows {
			runtime.RaceReadRange(m.at(i, 0), m.dtype.Size()*m.cols)
		}
	}
	for i := range out.rows {
		runtime.RaceWriteRange(out.at(i, 0), out.dtype.Size()*out.cols)
	}
}
