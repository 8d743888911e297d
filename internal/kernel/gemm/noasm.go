//go:build !(amd64 || arm64) || noasm

package gemm

func bestKernel(int) Kernel { return Kernel{MR: genericMR, NR: genericNR, isa: isaGo} }

func gemmAVX512(t *Tile, _ int) { gemmGeneric(t) }

func gemm6x16(t *Tile) { gemmGeneric(t) }

func interleaveVector([]float32, []uint16, []uint16) int { return 0 }

func pairKernel() (Kernel, bool) { return Kernel{}, false }

func pairs6x16(*Tile) { panic("BUG: gemm: no kernel of pairs") }

func pairsAVX512(*Tile) { panic("BUG: gemm: no kernel of pairs") }

func spreadPanels([]float32, int, int, []float32, int, int, int) int { return 0 }

func transposeBlocks([]float32, int, []float32, int, int, int) int { return 0 }
