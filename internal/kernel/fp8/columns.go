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
