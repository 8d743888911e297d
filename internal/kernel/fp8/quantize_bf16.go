package fp8

import "github.com/primus-fl/primus/internal/race"

// The functions for bfloat16 return how many elements or blocks they have done, from the first one
// on. There may be none: they leave what a CPU has no loop for, a rest, and what follows a block
// with a NaN or an infinity to a caller that widens it to float32.

// AmaxBF16 is Amax for the patterns of bfloat16.
func AmaxBF16(x []uint16) (done int, amax float32) {
	race.Read(x)
	done, amax = amaxBF16Vector(x)
	if amax != amax { // the largest pattern
		return 0, 0
	}
	return done, amax
}

// EncodeAmaxBF16 is EncodeAmax for the patterns of bfloat16.
func (f *Format) EncodeAmaxBF16(dst []byte, x []uint16, scale float32) (done int, amax float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	return f.encodeAmaxBF16Vector(dst, x, scale)
}

// QuantizeBF16 is Quantize for the patterns of bfloat16.
func (f *Format) QuantizeBF16(dst []byte, inv []float32, x []uint16, block int, epsilon float32, pow2 bool) (done int) {
	dst, inv = dst[:len(x)], inv[:(len(x)+block-1)/block]
	race.Read(x)
	race.Write(dst)
	race.Write(inv)
	return f.quantizeBF16Vector(dst, inv, x, block, epsilon, pow2)
}

// QuantizeE8M0BF16 is QuantizeE8M0 for the patterns of bfloat16.
func (f *Format) QuantizeE8M0BF16(dst, codes []byte, x []uint16) (done int) {
	dst, codes = dst[:len(x)], codes[:(len(x)+BlockE8M0-1)/BlockE8M0]
	race.Read(x)
	race.Write(dst)
	race.Write(codes)
	return f.quantizeE8M0BF16Vector(dst, codes, x)
}
