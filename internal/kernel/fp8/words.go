package fp8

import (
	"encoding/binary"
	"unsafe"

	"github.com/primus-fl/primus/internal/race"
)

const word = 8 // bytes that TransposeWords keeps together

// TransposeWords is Transpose for a matrix of eight bytes each, of which cols lie in a row; pitches
// are in bytes.
func TransposeWords(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	dst, src = dst[:(cols-1)*dstPitch+rows*word], src[:(rows-1)*srcPitch+cols*word]
	for r := range rows {
		race.ReadMemory(unsafe.Pointer(&src[r*srcPitch]), cols*word)
	}
	for c := range cols {
		race.WriteMemory(unsafe.Pointer(&dst[c*dstPitch]), rows*word)
	}
	down, right := transposeWordsVector(dst, dstPitch, src, srcPitch, rows, cols)
	for c := range cols {
		r := down
		if c >= right {
			r = 0
		}
		for ; r < rows; r++ {
			binary.LittleEndian.PutUint64(dst[c*dstPitch+r*word:], binary.LittleEndian.Uint64(src[r*srcPitch+c*word:]))
		}
	}
}

// Copy copies rows of n bytes, which lie at pitches. The matrices must not overlap.
func Copy(dst []byte, dstPitch int, src []byte, srcPitch, rows, n int) {
	if rows == 0 || n == 0 {
		return
	}
	dst, src = dst[:(rows-1)*dstPitch+n], src[:(rows-1)*srcPitch+n]
	for r := range rows {
		race.ReadMemory(unsafe.Pointer(&src[r*srcPitch]), n)
		race.WriteMemory(unsafe.Pointer(&dst[r*dstPitch]), n)
	}
	done := copyVector(dst, dstPitch, src, srcPitch, rows, n)
	if done == n {
		return
	}
	for r := range rows {
		copy(dst[r*dstPitch+done:][:n-done], src[r*srcPitch+done:])
	}
}
