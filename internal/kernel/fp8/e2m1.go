package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// E2M1Block is how many elements of E2M1 share a scale.
const E2M1Block = 16

// E2M1Limits has the limits of one scale: element k, from 1 to 7, is the least magnitude whose
// code is at least k. They do not fall with k. Element 0 is not used.
type E2M1Limits [8]float32

// E2M1Values has the numbers of the sixteen codes of E2M1 for one scale.
type E2M1Values [16]float32

// EncodeE2M1 stores the codes of x, two per byte, the first one in the lower four bits. The blocks
// of x, the last of which may be shorter, have the limits of their scales:
//
//	code of x[i] = the number of k from 1 on with limits[scales[⌊i/16⌋]][k] ≤ |x[i]|
//
// and the sign of x[i] in its highest bit. A NaN has code 7. len(x) is even, dst has at least
// len(x)/2 elements, and scales are below 128.
func EncodeE2M1(dst []byte, x []float32, scales []byte, limits *[128]E2M1Limits) {
	dst, scales = dst[:len(x)/2], scales[:(len(x)+E2M1Block-1)/E2M1Block]
	race.Read(x)
	race.Read(scales)
	race.Write(dst)
	done := encodeE2M1Vector(dst, x, scales, limits)
	encodeE2M1Generic(dst[done/2:], x[done:], scales[done/E2M1Block:], limits)
}

func encodeE2M1Generic(dst []byte, x []float32, scales []byte, limits *[128]E2M1Limits) {
	for i := range dst {
		l := &limits[scales[2*i/E2M1Block]&127]
		dst[i] = l.code(x[2*i]) | l.code(x[2*i+1])<<4
	}
}

func (l *E2M1Limits) code(v float32) byte {
	a := magnitude(v)
	if a != a {
		return 7
	}
	k := 0
	if a >= l[4] {
		k = 4
	}
	if a >= l[k+2] {
		k += 2
	}
	if a >= l[k+1] {
		k++
	}
	return byte(k) | byte(math.Float32bits(v)>>28&8)
}

// DecodeE2M1 stores the numbers of the codes in src, which EncodeE2M1 describes:
//
//	dst[i] = values[scales[⌊i/16⌋]][code of element i]
//
// for every element of dst, whose number is even.
func DecodeE2M1(dst []float32, src, scales []byte, values *[256]E2M1Values) {
	src, scales = src[:len(dst)/2], scales[:(len(dst)+E2M1Block-1)/E2M1Block]
	race.Read(src)
	race.Read(scales)
	race.Write(dst)
	for i := decodeE2M1Vector(dst, src, scales, values) / 2; i < len(src); i++ {
		v := &values[scales[2*i/E2M1Block]]
		dst[2*i], dst[2*i+1] = v[src[i]&15], v[src[i]>>4]
	}
}
