package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// EncodeE2M1AtRandom is EncodeE2M1 with stochastic rounding. With v =
// |x[i]|·factors[scales[⌊i/16⌋]] in f64, which lies between the numbers lo and hi of two codes, the
// code of x[i] is
//
//	that of hi if words[i]·2⁻³² < (v−lo)/(hi−lo), else that of lo
//
// and 7 from 6 on. words has at least len(x) elements.
func EncodeE2M1AtRandom(dst []byte, x []float32, scales []byte, words []uint32, factors *[128]float64) {
	dst, scales, words = dst[:len(x)/2], scales[:(len(x)+E2M1Block-1)/E2M1Block], words[:len(x)]
	race.Read(x)
	race.Read(scales)
	race.Read(words)
	race.Write(dst)
	for i := encodeE2M1AtRandomVector(dst, x, scales, words, factors) / 2; i < len(dst); i++ {
		factor := factors[scales[2*i/E2M1Block]&127]
		dst[i] = e2m1AtRandom(x[2*i], factor, words[2*i]) | e2m1AtRandom(x[2*i+1], factor, words[2*i+1])<<4
	}
}

func e2m1AtRandom(x float32, factor float64, word uint32) byte {
	v := float64(float64(magnitude(x)) * factor) // rounded, on machines that fuse as well
	if v != v {
		return 7
	}
	sign := byte(math.Float32bits(x) >> 28 & 8)
	h, first := 2*v, byte(0) // v in units of the distance of the numbers about it
	switch {
	case v >= 6:
		return sign | 7
	case v >= 4:
		h, first = v/2, 4
	case v >= 2:
		h, first = v, 2
	}
	lo := byte(h)
	if float64(word)*0x1p-32 < h-float64(lo) {
		lo++
	}
	return sign | (first + lo)
}

// TurnRows stores the columns of 16 rows of src as rows of 16 elements. Rows lie at pitches:
//
//	dst[c·dstPitch + r] = src[r·srcPitch + c]
//
// for r below 16 and c below cols. The matrices must not overlap.
func TurnRows(dst []float32, dstPitch int, src []float32, srcPitch, cols int) {
	if cols == 0 {
		return
	}
	dst, src = dst[:(cols-1)*dstPitch+E2M1Block], src[:(E2M1Block-1)*srcPitch+cols]
	for r := range E2M1Block {
		race.Read(src[r*srcPitch:][:cols])
	}
	for c := range cols {
		race.Write(dst[c*dstPitch:][:E2M1Block])
	}
	for c := turnRowsVector(dst, dstPitch, src, srcPitch, cols); c < cols; c++ {
		for r := range E2M1Block {
			dst[c*dstPitch+r] = src[r*srcPitch+c]
		}
	}
}
