//go:build amd64 && !noasm

package gemm

import "github.com/primus-fl/primus/internal/cpufeat"

func bestKernel(multiple int) Kernel {
	switch {
	case cpufeat.Has(cpufeat.AVX512) && multiple%48 == 0:
		return Kernel{MR: 8, NR: 48, isa: isaAVX512}
	case cpufeat.Has(cpufeat.AVX512):
		return Kernel{MR: 12, NR: 32, isa: isaAVX512}
	case cpufeat.Has(cpufeat.AVX2):
		return Kernel{MR: 6, NR: 16, isa: isa6x16}
	}
	return Kernel{MR: genericMR, NR: genericNR, isa: isaGo}
}

func pairKernel() (Kernel, bool) {
	return Kernel{MR: 8, NR: 48, isa: isaPairsAVX512}, cpufeat.Has(cpufeat.BF16)
}

// pairsAVX512 computes a tile of pairs.
func pairsAVX512(t *Tile) { pairs8x48AVX512(t) }

// gemmAVX512 computes a tile of at most nr columns.
func gemmAVX512(t *Tile, nr int) {
	if nr == 48 {
		gemm8x48AVX512(t)
		return
	}
	gemm12x32AVX512(t)
}

// gemm6x16 computes a whole tile of 6×16.
func gemm6x16(t *Tile) { gemm6x16AVX2(t) }

// pairs6x16 stands in for what only arm64 has.
func pairs6x16(*Tile) { panic("BUG: gemm: no kernel of 6×16 pairs") }

// See Tile for the loops.

//go:noescape
func gemm8x48AVX512(t *Tile)

//go:noescape
func gemm12x32AVX512(t *Tile)

//go:noescape
func pairs8x48AVX512(t *Tile)

//go:noescape
func gemm6x16AVX2(t *Tile)
