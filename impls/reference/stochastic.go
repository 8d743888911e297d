package reference

import (
	"math"

	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/tensor"
)

// word returns the random number of element i, as quant.Quantize numbers them.
func word(seed, offset uint64, stream uint32, i int) uint32 {
	block := offset + uint64(i/4)
	counter := [4]uint32{uint32(block), uint32(block >> 32), stream, 0}
	return random.Philox4x32(counter, [2]uint32{uint32(seed), uint32(seed >> 32)})[i%4]
}

// stochastic rounds v to one of its two neighbours in E2M1.
func stochastic(v float64, random uint32) tensor.Float4E2M1 {
	nearest := tensor.ToFloat4E2M1(v)
	magnitude := math.Abs(v)
	if !(magnitude < 6) {
		return nearest
	}
	sign, low := nearest&8, nearest&7
	if float64(low.Float32()) > magnitude {
		low--
	}
	lo, hi := float64(low.Float32()), float64((low + 1).Float32())
	if float64(random)*0x1p-32 < (magnitude-lo)/(hi-lo) {
		low++
	}
	return sign | low
}
