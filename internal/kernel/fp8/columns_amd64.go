//go:build amd64 && !noasm

package fp8

import "github.com/primus-fl/primus/internal/cpufeat"

// The columns whose magnitudes the loops keep in registers: several cache lines of each row.
const (
	columnsAVX512 = 256
	columnsAVX2   = 64
)

// amaxColumnsVector does the first columns, and returns how many.
func amaxColumnsVector(dst, x []float32, pitch, rows int) (done int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		if done = len(dst) &^ (columnsAVX512 - 1); done > 0 {
			amaxColumnsAVX512(&dst[0], &x[0], done, pitch, rows)
		}
	case cpufeat.Has(cpufeat.AVX2):
		if done = len(dst) &^ (columnsAVX2 - 1); done > 0 {
			amaxColumnsAVX2(&dst[0], &x[0], done, pitch, rows)
		}
	}
	return done
}

func amaxColumnsBF16Vector(dst []float32, x []uint16, pitch, rows int) (done int) {
	cols := len(dst) &^ (columnsAVX512 - 1)
	if cols == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return amaxColumnsBF16AVX512(&dst[0], &x[0], cols, pitch, rows)
}

// amaxColumnsBF16AVX512 does cols columns, a positive multiple of 256, of at least one row, up to
// 256 with a NaN.
//
//go:noescape
func amaxColumnsBF16AVX512(dst *float32, x *uint16, cols, pitch, rows int) (done int)

// encodeColumnsVector does the first columns, and returns how many.
func (f *Format) encodeColumnsVector(dst []byte, dstPitch int, x []float32, pitch, rows int, scale []float32) (done int) {
	done = len(scale) &^ 63
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	encodeColumnsAVX512(&dst[0], &x[0], &scale[0], done, rows, dstPitch, pitch, f)
	return done
}

// encodeColumnsAVX512 does a positive multiple of 64 columns of at least one row.
//
//go:noescape
func encodeColumnsAVX512(dst *byte, x, scale *float32, cols, rows, dstPitch, pitch int, f *Format)

// amaxColumnsAVX512 does a positive multiple of 256 columns of at least one row.
//
//go:noescape
func amaxColumnsAVX512(dst, x *float32, cols, pitch, rows int)

// amaxColumnsAVX2 does a positive multiple of 64 columns of at least one row.
//
//go:noescape
func amaxColumnsAVX2(dst, x *float32, cols, pitch, rows int)
