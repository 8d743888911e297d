package fp8

import "github.com/primus-fl/primus/internal/race"

// AmaxColumns stores the largest magnitudes of the columns of a matrix, whose rows lie at a pitch:
//
//	dst[c] = max |x[r·pitch + c]|
//
// over all rows r, for every element of dst. NaNs are ignored; a column without other elements has
// 0.
func AmaxColumns(dst, x []float32, pitch, rows int) {
	if rows == 0 || len(dst) == 0 {
		clear(dst)
		return
	}
	x = x[:(rows-1)*pitch+len(dst)]
	race.Write(dst)
	for r := range rows {
		race.Read(x[r*pitch:][:len(dst)])
	}
	done := amaxColumnsVector(dst, x, pitch, rows)
	if done == len(dst) {
		return
	}
	rest := dst[done:]
	clear(rest)
	for r := range rows {
		Raise(rest, x[r*pitch+done:][:len(rest)])
	}
}

// AmaxColumnsBF16 is AmaxColumns for the patterns of bfloat16. It returns how many columns it has
// done, as the other functions for bfloat16 do.
func AmaxColumnsBF16(dst []float32, x []uint16, pitch, rows int) (done int) {
	if rows == 0 || len(dst) == 0 {
		return 0
	}
	x = x[:(rows-1)*pitch+len(dst)]
	race.Write(dst)
	for r := range rows {
		race.Read(x[r*pitch:][:len(dst)])
	}
	return amaxColumnsBF16Vector(dst, x, pitch, rows)
}

// EncodeColumns rounds the columns of a matrix to fp8 with a scale for each. The rows of both
// matrices lie at a pitch:
//
//	dst[r·dstPitch + c] = fp8(x[r·pitch + c]·scale[c])
//
// for all rows and every element of scale, as Encode does.
func (f *Format) EncodeColumns(dst []byte, dstPitch int, x []float32, pitch, rows int, scale []float32) {
	cols := len(scale)
	if rows == 0 || cols == 0 {
		return
	}
	dst, x = dst[:(rows-1)*dstPitch+cols], x[:(rows-1)*pitch+cols]
	race.Read(scale)
	for r := range rows {
		race.Read(x[r*pitch:][:cols])
		race.Write(dst[r*dstPitch:][:cols])
	}
	done := f.encodeColumnsVector(dst, dstPitch, x, pitch, rows, scale)
	if done == cols {
		return
	}
	for r := range rows {
		f.EncodeEach(dst[r*dstPitch+done:], x[r*pitch+done:][:cols-done], scale[done:])
	}
}
