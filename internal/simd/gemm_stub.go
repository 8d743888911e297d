//go:build !amd64 || noasm

package simd

func bestKernel() Kernel { return Kernel{MR: genericMR, NR: genericNR, isa: isaGo} }

func gemmAVX512(t *Tile) { gemmGeneric(t) }

func gemmAVX2(t *Tile) { gemmGeneric(t) }
