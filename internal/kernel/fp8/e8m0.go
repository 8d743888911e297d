package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// Codes of E8M0, which are exponents of float32.
const (
	infiniteCode = 254
	nanCode      = 255
	infiniteBits = 0x7f800000
	nanBits      = 0x7fc00000
	halfTiny     = 1 << 22 // 2^−127 in float32
)

// EncodeE8M0 stores the code of the least power of two that is not below amax/largest for each
// element of amax, where largest is that of the format, and replaces the element by the reciprocal
// of the power. The elements are not negative and no NaN; the code of +Inf is the largest one.
func (f *Format) EncodeE8M0(codes []byte, amax []float32) {
	codes = codes[:len(amax)]
	race.Read(amax)
	race.Write(amax)
	race.Write(codes)
	bias := f.bias()
	done := encodeE8M0Vector(codes, amax, bias)
	encodeE8M0Generic(codes[done:], amax[done:], bias)
}

// bias is the exponent of the largest number.
func (f *Format) bias() int32 { return int32(math.Float32bits(f.largest)>>23) - 127 }

// toNext is what takes a fraction above that of the largest numbers, 1.75 in either format, to the
// next exponent.
const toNext = 1<<23 - 1 - 0x600000

func encodeE8M0Generic(codes []byte, amax []float32, bias int32) {
	for i, a := range amax {
		u := math.Float32bits(a)
		code := max(int32((u+toNext)>>23)-bias, 0)
		reciprocal := uint32(infiniteCode-code) << 23
		if u == infiniteBits {
			code, reciprocal = infiniteCode, halfTiny
		}
		codes[i], amax[i] = byte(code), math.Float32frombits(reciprocal)
	}
}

// DecodeE8M0 stores the number of each code: 2^(code−127), and NaN for 255.
func DecodeE8M0(dst []float32, codes []byte) {
	dst = dst[:len(codes)]
	race.Read(codes)
	race.Write(dst)
	for i := decodeE8M0Vector(dst, codes); i < len(codes); i++ {
		u := uint32(codes[i]) << 23
		switch codes[i] {
		case 0:
			u = halfTiny
		case nanCode:
			u = nanBits
		}
		dst[i] = math.Float32frombits(u)
	}
}

// ReciprocalsE8M0 stores the reciprocal of the number of each code.
func ReciprocalsE8M0(dst []float32, codes []byte) {
	dst = dst[:len(codes)]
	for i, code := range codes {
		u := uint32(infiniteCode-int32(code)) << 23
		switch code {
		case infiniteCode:
			u = halfTiny
		case nanCode:
			u = nanBits
		}
		dst[i] = math.Float32frombits(u)
	}
}
