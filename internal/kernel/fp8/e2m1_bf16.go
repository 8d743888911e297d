package fp8

import "github.com/primus-fl/primus/internal/race"

// AmaxesE2M1BF16 is Amaxes for the patterns of bfloat16 in blocks of E2M1. It returns how many
// blocks it has done, as the other functions for bfloat16 do.
func AmaxesE2M1BF16(dst []float32, x []uint16) (done int) {
	dst = dst[:(len(x)+E2M1Block-1)/E2M1Block]
	race.Read(x)
	race.Write(dst)
	return amaxesE2M1BF16Vector(dst, x)
}

// EncodeE2M1BF16 is EncodeE2M1 for the patterns of bfloat16. It returns how many elements it has
// done, which are whole blocks, as the other functions for bfloat16 do.
func EncodeE2M1BF16(dst []byte, x []uint16, scales []byte, limits *[128]E2M1Limits) (done int) {
	dst, scales = dst[:len(x)/2], scales[:(len(x)+E2M1Block-1)/E2M1Block]
	race.Read(x)
	race.Read(scales)
	race.Write(dst)
	return encodeE2M1BF16Vector(dst, x, scales, limits)
}

// EncodeE2M1DownBF16 is EncodeE2M1Down for the patterns of bfloat16. It returns how many columns it
// has done, as the other functions for bfloat16 do.
func EncodeE2M1DownBF16(dst []byte, x []uint16, pitch int, scales []byte, limits *[128]E2M1Limits) (done int) {
	if len(scales) == 0 {
		return 0
	}
	dst, x = dst[:len(scales)*E2M1Block/2], x[:(E2M1Block-1)*pitch+len(scales)]
	for r := range E2M1Block {
		race.Read(x[r*pitch:][:len(scales)])
	}
	race.Read(scales)
	race.Write(dst)
	return encodeE2M1DownBF16Vector(dst, x, pitch, scales, limits)
}
