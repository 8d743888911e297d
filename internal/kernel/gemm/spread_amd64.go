//go:build amd64 && !noasm

package gemm

import "github.com/primus-fl/primus/internal/cpufeat"

// spreadPanels copies as many whole panels as the assembly can, and returns their number.
func spreadPanels(dst []float32, panel, width int, src []float32, srcRow, rows, panels int) int {
	if panels == 0 || width > MaxNR || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	spreadAVX512(&dst[0], panel, width, &src[0], srcRow, rows, panels)
	return panels
}

// spreadAVX512 copies rows of at least one panel of at most MaxNR columns.
//
//go:noescape
func spreadAVX512(dst *float32, panel, width int, src *float32, srcRow, rows, panels int)
