package fp8

import "math"

// amaxGeneric returns the largest of a and the magnitudes of x.
func amaxGeneric(a float32, x []float32) float32 {
	for _, v := range x {
		if v = magnitude(v); v > a {
			a = v
		}
	}
	return a
}

func raiseGeneric(dst, x []float32) {
	for i, v := range x {
		if v = magnitude(v); v > dst[i] {
			dst[i] = v
		}
	}
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

func (f *Format) encodeGeneric(dst []byte, x []float32, scale float32) {
	for i, v := range x {
		dst[i] = f.pattern(v * scale)
	}
}

func (f *Format) decodeGeneric(dst []float32, src []byte, scale float32) {
	for i, b := range src {
		dst[i] = f.value(b) * scale
	}
}

// pattern returns the fp8 nearest to v.
func (f *Format) pattern(v float32) byte {
	sign := byte(math.Float32bits(v) >> 24 & 0x80)
	a := magnitude(v)
	switch {
	case a != a:
		return sign | byte(f.nan)
	case a < f.normal:
		return sign | byte(math.Float32bits(a+f.subnormal)-math.Float32bits(f.subnormal))
	default:
		u := math.Float32bits(min(a, f.largest))
		return sign | byte((u+f.roundUp+u>>f.shift&1)>>f.shift)
	}
}

// value returns the number of a pattern.
func (f *Format) value(b byte) float32 {
	var v float32
	switch u := b & 0x7f; {
	case u < f.notFinite:
		v = math.Float32frombits(uint32(u)<<f.shift) * f.wide
	case u == infinity:
		v = float32(math.Inf(1))
	default:
		v = float32(math.NaN())
	}
	return math.Float32frombits(math.Float32bits(v) | uint32(b&0x80)<<24)
}
