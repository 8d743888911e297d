//go:build !noasm

package opbench

import "github.com/primus-fl/primus/internal/cpufeat"

// fmaKernel returns the kernel with the widest vectors, and its operations per round.
func fmaKernel() (kernel func(rounds int), perRound float64) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return fmaAVX512, 16 * 16 * 2
	case cpufeat.Has(cpufeat.AVX2):
		return fmaAVX2, 12 * 8 * 2
	}
	return nil, 0
}

// fmaAVX512 runs rounds of 16 independent fused multiply-adds of 16 elements.
//
//go:noescape
func fmaAVX512(rounds int)

// fmaAVX2 runs rounds of 12 independent fused multiply-adds of 8 elements.
//
//go:noescape
func fmaAVX2(rounds int)
