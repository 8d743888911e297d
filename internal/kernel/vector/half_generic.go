package vector

import "math"

func widenBF16Generic(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = math.Float32frombits(uint32(v) << 16)
	}
}

func narrowBF16Generic(dst []uint16, src []float32) {
	for i, v := range src {
		u := math.Float32bits(v)
		if v != v {
			dst[i] = uint16(u>>16 | 0x40)
		} else {
			dst[i] = uint16((u + 0x7fff + u>>16&1) >> 16)
		}
	}
}

// The patterns of binary16, shifted to the mantissa of binary32, are the same numbers divided by
// 2¹¹².
func widenF16Generic(dst []float32, src []uint16) {
	for i, v := range src {
		u := uint32(v&0x7fff) << 13
		switch {
		case u > 0x7c00<<13:
			u |= 0x7fc00000
		case u == 0x7c00<<13:
			u = 0x7f800000
		default:
			u = math.Float32bits(math.Float32frombits(u) * 0x1p112)
		}
		dst[i] = math.Float32frombits(u | uint32(v&0x8000)<<16)
	}
}

func narrowF16Generic(dst []uint16, src []float32) {
	for i, v := range src {
		u := math.Float32bits(v)
		sign := u >> 16 & 0x8000
		switch u &= 0x7fffffff; {
		case u > 0x7f800000:
			u = 0x7e00 | u>>13&0x3ff
		case u >= 0x477ff000: // 65520, halfway to 2¹⁶
			u = 0x7c00
		case u < 0x38800000: // 2⁻¹⁴; a unit of ½ is a unit of the subnormals of binary16
			u = math.Float32bits(math.Float32frombits(u)+0.5) - 0x3f000000
		default:
			u = (u + 0xfff + u>>13&1 - 112<<23) >> 13
		}
		dst[i] = uint16(sign | u)
	}
}
