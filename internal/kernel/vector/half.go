package vector

import "github.com/primus-fl/primus/internal/race"

// WidenBF16 stores bit patterns of bfloat16 as the float32 that they stand for:
//
//	dst[i] = src[i]
//
// for every element of src, exactly. The slices must not overlap.
func WidenBF16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	done := widenBF16Vector(dst, src)
	widenBF16Generic(dst[done:], src[done:])
}

// WidenF16 is WidenBF16 for IEEE 754 binary16, including subnormals. A signalling NaN becomes a
// quiet one.
func WidenF16(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	done := widenF16Vector(dst, src)
	widenF16Generic(dst[done:], src[done:])
}

// NarrowBF16 stores float32 as bit patterns of bfloat16, rounded to nearest, ties to even:
//
//	dst[i] = bfloat16(src[i])
//
// for every element of src. Beyond the largest finite value the result is an infinity, a NaN
// becomes a quiet NaN of its sign, subnormals are kept. The slices must not overlap.
func NarrowBF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	done := narrowBF16Vector(dst, src)
	narrowBF16Generic(dst[done:], src[done:])
}

// NarrowF16 is NarrowBF16 for IEEE 754 binary16.
func NarrowF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	done := narrowF16Vector(dst, src)
	narrowF16Generic(dst[done:], src[done:])
}
