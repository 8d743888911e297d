package vector

import "github.com/primus-fl/primus/internal/race"

// DotRows stores the products of x with rows of a matrix:
//
//	dst[i] = Σ x[j]·y[i·pitch+j]
//
// for every element of dst, with the bits that Dot has. A row has the length of x, and a pitch is
// at least that long.
func DotRows(dst, x, y []float32, pitch int) {
	y = y[:rowsEnd(len(dst), len(x), pitch)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	dotRows(dst, x, y, pitch)
}

// DotRowsBF16 is DotRows for a matrix of bit patterns of bfloat16, which are widened exactly.
func DotRowsBF16(dst, x []float32, y []uint16, pitch int) {
	y = y[:rowsEnd(len(dst), len(x), pitch)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	dotRowsBF16(dst, x, y, pitch)
}

// DotRowsF16 is DotRowsBF16 for IEEE 754 binary16.
func DotRowsF16(dst, x []float32, y []uint16, pitch int) {
	y = y[:rowsEnd(len(dst), len(x), pitch)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	dotRowsF16(dst, x, y, pitch)
}

// The rows of x and of y of which DotTile computes the products.
const (
	TileX = 3
	TileY = 4
)

// TileProducts are the products of a tile: that of row i of x with row j of y is element 3j+i.
type TileProducts [TileX * TileY]float32

// TileSums is scratch for DotTile.
type TileSums [2 * TileX * TileY * 16]float32

// TileVector returns the number of elements of which the rows of DotTile are multiples, 0 where the
// CPU has no instructions for it.
func TileVector() int { return tileVector() }

// DotTile stores the products of three rows of x with four rows of y, each of n elements:
//
//	dst[3j+i] = Σ x[i·xPitch+k]·y[j·yPitch+k]
//
// with the bits that Dot has. n is a multiple of TileVector, and a pitch is at least n. sums is
// overwritten.
func DotTile(dst *TileProducts, sums *TileSums, x []float32, xPitch int, y []float32, yPitch, n int) {
	if v := TileVector(); v == 0 || n%v != 0 {
		panic("BUG: vector: tile of rows that are not whole vectors")
	}
	x, y = x[:rowsEnd(TileX, n, xPitch)], y[:rowsEnd(TileY, n, yPitch)]
	race.Read(x)
	race.Read(y)
	dotTile(dst, sums, x, xPitch, y, yPitch, n)
}

// AxpyRows adds multiples of the rows of a matrix:
//
//	dst[j] += a[i]·y[i·pitch+j]
//
// for every element of a in ascending order, and every element of dst, with the bits of a call of
// Axpy for each row. A row has the length of dst, and a pitch is at least that long.
func AxpyRows(dst, a, y []float32, pitch int) {
	y = y[:rowsEnd(len(a), len(dst), pitch)]
	race.Read(a)
	race.Read(y)
	race.Write(dst)
	axpyRows(dst, a, y, pitch)
}

// SumRows stores the sum of multiples of some rows of a matrix:
//
//	dst[j] = Σ w[i]·y[rows[i]·pitch+j]
//
// for every element of dst and the elements of rows in order, with the bits of Scale for the first
// row and of Axpy for each other one; without rows it stores zeros. A row has the length of dst. w
// has a weight for every row, or one for all of them.
func SumRows(dst, w, y []float32, pitch int, rows []int32) {
	if len(rows) == 0 {
		clear(dst)
		return
	}
	step := 1
	if len(w) == 1 {
		step = 0
	} else {
		w = w[:len(rows)]
	}
	race.Read(w)
	race.Write(dst)
	for _, r := range rows {
		race.Read(y[int(r)*pitch:][:len(dst)])
	}
	sumRows(dst, w, step, y, pitch, rows)
}

// rowsEnd returns where the last of some rows ends.
func rowsEnd(rows, cols, pitch int) int {
	if rows == 0 {
		return 0
	}
	return (rows-1)*pitch + cols
}
