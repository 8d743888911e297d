package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// AmaxesE2M1BF16 is Amaxes for the patterns of bfloat16 in blocks of E2M1. It returns how many
// blocks it has done, as the other functions for bfloat16 do.
func AmaxesE2M1BF16(dst []float32, x []uint16) (done int) {
	dst = dst[:(len(x)+E2M1Block-1)/E2M1Block]
	race.Read(x)
	race.Write(dst)
	return amaxesE2M1BF16Vector(dst, x)
}

// E2M1Words has the limits of scales for the patterns of bfloat16. Set makes it, and the assembly
// knows the offsets of its fields.
//
// The distance t of a magnitude from the base of its scale, both as patterns, is at most 1023 here,
// and there is at most one limit among 32 distances that follow each other. Element ⌊t/32⌋ of the
// scale's table is such that the sum with t has the code from bit 5 on: it carries where t reaches
// the limit.
type E2M1Words struct {
	tables [128][32]uint16
	bases  [128]uint32 // in both halves
}

// Set sets the limits of a scale, as E2M1Limits.Set does. It reports whether E2M1Words can hold
// them: not if they are too near to each other.
func (w *E2M1Words) Set(scale int, limits *[8]float32) bool {
	var at [9]int
	for k, l := range limits[1:] {
		at[k+1] = int((uint64(math.Float32bits(l)) + 1<<16 - 1) >> 16)
	}
	base := max(at[1]-1, 0)
	at[8] = math.MaxInt
	if at[1] == 0 || at[7]-base >= 32*32 {
		return false
	}
	for k := 2; k < 8; k++ {
		if at[k]-at[k-1] < 32 {
			return false
		}
	}
	w.bases[scale] = uint32(base) * 0x10001
	k := 0
	for i := range w.tables[scale] {
		v := 32 * (k - i)
		if place := at[k+1] - base - 32*i; place < 32 {
			v += 32 - place
			k++
		}
		w.tables[scale][i] = uint16(v)
	}
	return true
}

// EncodeE2M1BF16 is EncodeE2M1 for the patterns of bfloat16. It returns how many elements it has
// done, which are whole blocks, as the other functions for bfloat16 do. The scales have been set in
// words.
func EncodeE2M1BF16(dst []byte, x []uint16, scales []byte, words *E2M1Words) (done int) {
	dst, scales = dst[:len(x)/2], scales[:(len(x)+E2M1Block-1)/E2M1Block]
	race.Read(x)
	race.Read(scales)
	race.Write(dst)
	return encodeE2M1BF16Vector(dst, x, scales, words)
}

// EncodeE2M1DownBF16 is EncodeE2M1Down for the patterns of bfloat16. It returns how many columns it
// has done, as the other functions for bfloat16 do.
func EncodeE2M1DownBF16(dst []byte, x []uint16, pitch int, scales []byte, words *E2M1Words) (done int) {
	if len(scales) == 0 {
		return 0
	}
	dst, x = dst[:len(scales)*E2M1Block/2], x[:(E2M1Block-1)*pitch+len(scales)]
	for r := range E2M1Block {
		race.Read(x[r*pitch:][:len(scales)])
	}
	race.Read(scales)
	race.Write(dst)
	return encodeE2M1DownBF16Vector(dst, x, pitch, scales, words)
}
