//go:build amd64 && !noasm

package vector

import (
	"math"

	"github.com/primus-fl/primus/internal/cpufeat"
)

func logSumExp(dst []float64, x []float32, cols, pitch int) {
	if !cpufeat.Has(cpufeat.AVX2) {
		logSumExpGeneric(dst, x, cols, pitch)
		return
	}
	wide := cpufeat.Has(cpufeat.AVX512)
	for len(dst) > 0 {
		rows := min(len(dst), lseRows)
		if wide {
			logSumExpAVX512(&dst[0], &x[0], rows, cols, pitch)
		}
		for r := range dst[:rows] {
			if !wide || dst[r] != dst[r] {
				dst[r] = logSumExpAVX2(x[r*pitch:][:cols])
			}
		}
		if dst = dst[rows:]; len(dst) > 0 {
			x = x[rows*pitch:]
		}
	}
}

func logSumExpAVX2(x []float32) float64 {
	most := maximumAVX2(x)
	if sum := sumExpAVX2(x, most); sum >= 1 {
		return float64(most) + math.Log(float64(sum))
	}
	return logSumExp1(x)
}

// lseRows bounds the rows of logSumExpAVX512.
const lseRows = 16

// logSumExpAVX512 takes 1 to lseRows rows of at least one element. It stores NaN for
// a row whose elements are too large, too far from the first or not finite.
//
//go:noescape
func logSumExpAVX512(dst *float64, x *float32, rows, cols, pitch int)

//go:noescape
func sumExpAVX2(x []float32, shift float32) float32
