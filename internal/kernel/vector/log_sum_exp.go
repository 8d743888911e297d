package vector

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// LogSumExp stores the logarithm of each row's sum of exponentials:
//
//	dst[r] = ln Σ exp(x[r,i])
//
// for len(dst) rows of cols elements that begin pitch elements apart, within 4·10⁻⁷ and the
// rounding of the elements that count: the relative error of a term of the sum is within 2·10⁻⁷·(1
// + d/3), where d is how far its element is below the maximum. Sums are float32 in several partial
// sums of fixed layout, and float64 over stretches of some thousand elements. A row with a NaN
// gives NaN, else one with +Inf gives +Inf; −Inf alone, or no element, gives −Inf.
func LogSumExp(dst []float64, x []float32, cols, pitch int) {
	if len(dst) == 0 {
		return
	}
	x = x[:(len(dst)-1)*pitch+cols]
	if race.Enabled {
		for r := range dst {
			race.Read(x[r*pitch:][:cols])
		}
	}
	race.Write(dst)
	switch {
	case cols == 0:
		for r := range dst {
			dst[r] = math.Inf(-1)
		}
	case cols <= lseStretch:
		logSumExp(dst, x, cols, pitch)
	default:
		for r := range dst {
			dst[r] = logSumExpLong(x[r*pitch:][:cols])
		}
	}
}

// lseStretch is the number of elements of a row whose sum is float32.
const lseStretch = 1 << 12

// logSumExpLong combines the stretches of a long row.
func logSumExpLong(x []float32) float64 {
	most, sum := math.Inf(-1), 1.
	for len(x) > 0 {
		var each [16]float64
		n := min(len(x), lseStretch)
		parts := each[:min(len(x)/n, len(each))]
		logSumExp(parts, x, n, n)
		x = x[len(parts)*n:]

		shift := most
		for _, v := range parts {
			shift = max(shift, v)
		}
		if shift-shift == 0 {
			sum *= math.Exp(most - shift)
			for _, v := range parts {
				sum += math.Exp(v - shift)
			}
		}
		most = shift
	}
	return most + math.Log(sum)
}

func logSumExpGeneric(dst []float64, x []float32, cols, pitch int) {
	for r := range dst {
		dst[r] = logSumExp1(x[r*pitch:][:cols])
	}
}

// logSumExp1 computes one row in plain Go.
func logSumExp1(x []float32) float64 {
	most := float32(math.Inf(-1))
	for _, v := range x {
		most = max(most, v)
	}
	if most-most != 0 { // not finite
		return float64(most)
	}
	sum := 0.
	for _, v := range x {
		sum += float64(Exp1(v - most))
	}
	return float64(most) + math.Log(sum)
}
