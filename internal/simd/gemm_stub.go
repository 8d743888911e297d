//go:build !amd64 || noasm

package simd

func bestKernel(int) Kernel { return Kernel{MR: genericMR, NR: genericNR, isa: isaGo} }

func gemmAVX512(t *Tile, _ int) { gemmGeneric(t) }

func gemmAVX2(t *Tile) { gemmGeneric(t) }
