//go:build amd64 && !noasm

package vector

import "github.com/primus-fl/primus/internal/cpufeat"

func dotRows(dst, x, y []float32, pitch int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		dotRowsAVX512(dst, x, y, pitch)
	case cpufeat.Has(cpufeat.AVX2):
		dotRowsAVX2(dst, x, y, pitch)
	default:
		dotRowsGeneric(dst, x, y, pitch)
	}
}

func dotRowsBF16(dst, x []float32, y []uint16, pitch int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		dotRowsBF16AVX512(dst, x, y, pitch)
	case cpufeat.Has(cpufeat.AVX2):
		dotRowsBF16AVX2(dst, x, y, pitch)
	default:
		dotRowsBF16Generic(dst, x, y, pitch)
	}
}

func dotRowsF16(dst, x []float32, y []uint16, pitch int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		dotRowsF16AVX512(dst, x, y, pitch)
	case cpufeat.Has(cpufeat.AVX2):
		dotRowsF16AVX2(dst, x, y, pitch)
	default:
		dotRowsF16Generic(dst, x, y, pitch)
	}
}

func dotTile(dst *TileProducts, sums *TileSums, x []float32, xPitch int, y []float32, yPitch, n int) {
	if cpufeat.Has(cpufeat.AVX512) {
		dotTileAVX512(dst, sums, x, xPitch, y, yPitch, n)
	} else {
		dotTileAVX2(dst, sums, x, xPitch, y, yPitch, n)
	}
}

// tileVector is the number of elements of which the rows of a tile are made; 0 means that there are
// no tiles.
func tileVector() int {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return 16
	case cpufeat.Has(cpufeat.AVX2):
		return 8
	}
	return 0
}

func axpyRows(dst, a, y []float32, pitch int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		axpyRowsAVX512(dst, a, y, pitch)
	case cpufeat.Has(cpufeat.AVX2):
		axpyRowsAVX2(dst, a, y, pitch)
	default:
		axpyRowsGeneric(dst, a, y, pitch)
	}
}

func sumRows(dst, w []float32, wStep int, y []float32, pitch int, rows []int32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		sumRowsAVX512(dst, w, wStep, y, pitch, rows)
	case cpufeat.Has(cpufeat.AVX2):
		sumRowsAVX2(dst, w, wStep, y, pitch, rows)
	default:
		sumRowsGeneric(dst, w, wStep, y, pitch, rows)
	}
}

// The functions in assembly compute what the generic ones do. y holds every row.

//go:noescape
func dotRowsAVX512(dst, x, y []float32, pitch int)

//go:noescape
func dotRowsBF16AVX512(dst, x []float32, y []uint16, pitch int)

//go:noescape
func dotRowsF16AVX512(dst, x []float32, y []uint16, pitch int)

//go:noescape
func dotRowsAVX2(dst, x, y []float32, pitch int)

//go:noescape
func dotRowsBF16AVX2(dst, x []float32, y []uint16, pitch int)

//go:noescape
func dotRowsF16AVX2(dst, x []float32, y []uint16, pitch int)

//go:noescape
func dotTileAVX512(dst *TileProducts, sums *TileSums, x []float32, xPitch int, y []float32, yPitch, n int)

//go:noescape
func dotTileAVX2(dst *TileProducts, sums *TileSums, x []float32, xPitch int, y []float32, yPitch, n int)

//go:noescape
func axpyRowsAVX512(dst, a, y []float32, pitch int)

//go:noescape
func axpyRowsAVX2(dst, a, y []float32, pitch int)

//go:noescape
func sumRowsAVX512(dst, w []float32, wStep int, y []float32, pitch int, rows []int32)

//go:noescape
func sumRowsAVX2(dst, w []float32, wStep int, y []float32, pitch int, rows []int32)
