package gemm

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// Interleave stores two rows of bit patterns of 16 bits as a row of pairs:
//
//	bits(dst[i]) = a[i] + b[i]<<16
//
// for every element of a; b and dst have as many. The slices must not overlap. Products of pairs
// use it to pack operands whose rows run across the inner axis.
func Interleave(dst []float32, a, b []uint16) {
	if len(b) != len(a) || len(dst) != len(a) {
		panic(fmt.Sprintf("BUG: gemm: interleave rows of %d and %d elements to %d pairs", len(a), len(b), len(dst)))
	}
	race.Read(a)
	race.Read(b)
	race.Write(dst)
	done := interleaveVector(dst, a, b)
	interleaveGeneric(dst[done:], a[done:], b[done:])
}

func interleaveGeneric(dst []float32, a, b []uint16) {
	for i, low := range a {
		dst[i] = math.Float32frombits(uint32(low) | uint32(b[i])<<16)
	}
}
