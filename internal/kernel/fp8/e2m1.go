package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// E2M1Block is how many elements of E2M1 share a scale.
const E2M1Block = 16

// E2M1Limits has the limits of one scale: for each code from 1 to 7, the least magnitude that gets
// this code or a larger one. They do not fall. Set makes it from them.
//
// The limit of a code has the index n for which n·0.45 is nearest to the tie below the code, which
// is 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 or 5. A magnitude times the factor, rounded to a multiple of
// 0.45, thus numbers the only limit that the magnitude has to be compared with. The elements
// without a limit are infinite, except for the last one, which holds the factor.
type E2M1Limits [16]float32

// e2m1Places are the indexes of the limits of the codes.
var e2m1Places = [8]int{1: 1, 2, 3, 4, 6, 8, 11}

// e2m1Factor makes a product a number of quarters, of which there is one for each 0.45: the
// assembly adds it to a number whose unit is a quarter.
const e2m1Factor = 0.25 / 0.45

// Set sets the limits of the codes, of which the element 0 is not used, and the factor by which
// magnitudes are multiplied, at least to three digits, before they are rounded to E2M1.
func (l *E2M1Limits) Set(limits *[8]float32, factor float32) {
	for i := range l {
		l[i] = float32(math.Inf(1))
	}
	for k, at := range e2m1Places[1:] {
		l[at] = limits[k+1]
	}
	l[15] = factor * e2m1Factor
}

// E2M1Scales says which scale in E4M3 a block has: element c is the least amax whose code is above
// c. They do not fall, and those from 126 on are infinite.
type E2M1Scales struct {
	Least  [128]float32
	Factor float32 // about from an amax to its scale
}

// Encode stores the codes of the scales of blocks with these amaxes, which are not NaN.
func (s *E2M1Scales) Encode(codes []byte, amax []float32) {
	codes = codes[:len(amax)]
	race.Read(amax)
	race.Write(codes)
	for i := s.encodeVector(codes, amax); i < len(amax); i++ {
		codes[i] = s.code(amax[i])
	}
}

func (s *E2M1Scales) code(amax float32) byte {
	c := 0
	for step := 64; step > 0; step /= 2 {
		if c+step < 127 && amax >= s.Least[c+step-1] {
			c += step
		}
	}
	return byte(c)
}

// E2M1Values has the numbers of the sixteen codes of E2M1 for one scale.
type E2M1Values [16]float32

// EncodeE2M1 stores the codes of x, two per byte, the first one in the lower four bits. The blocks
// of x, the last of which may be shorter, have the limits of their scales:
//
//	code of x[i] = how many of the seven limits in limits[scales[⌊i/16⌋]] are ≤ |x[i]|
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
	for step := 4; step > 0; step /= 2 {
		if a >= l[e2m1Places[k+step]] {
			k += step
		}
	}
	return byte(k) | byte(math.Float32bits(v)>>28&8)
}

// EncodeE2M1Down is EncodeE2M1 for the columns of 16 rows of x, which lie at a pitch: column j,
// which has limits[scales[j]], becomes the eight bytes of dst from 8j on.
func EncodeE2M1Down(dst []byte, x []float32, pitch int, scales []byte, limits *[128]E2M1Limits) {
	if len(scales) == 0 {
		return
	}
	const half = E2M1Block / 2
	dst, x = dst[:len(scales)*half], x[:(E2M1Block-1)*pitch+len(scales)]
	for r := range E2M1Block {
		race.Read(x[r*pitch:][:len(scales)])
	}
	race.Read(scales)
	race.Write(dst)
	var block [E2M1Block]float32
	for j := encodeE2M1DownVector(dst, x, pitch, scales, limits); j < len(scales); j++ {
		for i := range block {
			block[i] = x[i*pitch+j]
		}
		EncodeE2M1(dst[j*half:], block[:], scales[j:j+1], limits)
	}
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

// DecodeE2M1Down stores the numbers of columns of 16 rows, which lie at a pitch in dst. Column j is
// the eight bytes of src from j·srcPitch on, and its numbers are those of values[scales[j]]. With
// past, dst may be written past the caches, which pays when they cannot hold what it belongs to.
func DecodeE2M1Down(dst []float32, pitch int, src []byte, srcPitch int, scales []byte, values *[256]E2M1Values, past bool) {
	if len(scales) == 0 {
		return
	}
	const half = E2M1Block / 2
	dst, src = dst[:(E2M1Block-1)*pitch+len(scales)], src[:(len(scales)-1)*srcPitch+half]
	for r := range E2M1Block {
		race.Write(dst[r*pitch:][:len(scales)])
	}
	for j := range scales {
		race.Read(src[j*srcPitch:][:half])
	}
	race.Read(scales)
	var block [E2M1Block]float32
	for j := decodeE2M1DownVector(dst, pitch, src, srcPitch, scales, values, past); j < len(scales); j++ {
		DecodeE2M1(block[:], src[j*srcPitch:], scales[j:j+1], values)
		for i, v := range block {
			dst[i*pitch+j] = v
		}
	}
}
