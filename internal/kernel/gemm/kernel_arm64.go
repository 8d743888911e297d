//go:build !noasm

package gemm

import "github.com/primus-fl/primus/internal/cpufeat"

func bestKernel(int) Kernel {
	if cpufeat.Has(cpufeat.NEON) {
		return Kernel{MR: 6, NR: 16, isa: isa6x16}
	}
	return Kernel{MR: genericMR, NR: genericNR, isa: isaGo}
}

func pairKernel() (Kernel, bool) {
	return Kernel{MR: 6, NR: 16, isa: isaPairs6x16}, cpufeat.Has(cpufeat.NEONBF16)
}

// gemm6x16 computes a whole tile of 6×16, and pairs6x16 one of pairs.
func gemm6x16(t *Tile)  { gemm6x16NEON(t) }
func pairs6x16(t *Tile) { pairs6x16NEON(t) }

// The following stand in for what only amd64 has.

func gemmAVX512(*Tile, int) { panic("BUG: gemm: no kernel of AVX-512") }

func pairsAVX512(*Tile) { panic("BUG: gemm: no kernel of AVX-512") }

func interleaveVector([]float32, []uint16, []uint16) int { return 0 }

func spreadPanels([]float32, int, int, []float32, int, int, int) int { return 0 }

// transposeBlocks transposes the first cols/4·4 columns of as many rows, from the first, as the
// assembly can, and returns the number of these rows.
func transposeBlocks(dst []float32, dstRow int, src []float32, srcRow, rows, cols int) int {
	if cols < 4 || !cpufeat.Has(cpufeat.NEON) {
		return 0
	}
	done := 0
	for ; done+4 <= rows; done += 4 {
		transpose4NEON(&dst[done], dstRow, &src[done*srcRow], srcRow, cols/4)
	}
	return done
}

// See Tile for the loops.

//go:noescape
func gemm6x16NEON(t *Tile)

//go:noescape
func pairs6x16NEON(t *Tile)

// transpose4NEON transposes 4 rows of 4·quads columns.
//
//go:noescape
func transpose4NEON(dst *float32, dstRow int, src *float32, srcRow, quads int)
