//go:build !amd64 || noasm

package philox

func atLeast(dst []uint32, seed, counter uint64, threshold uint32) {
	atLeastGeneric(dst, seed, counter, threshold)
}

func keep(dst, x []float32, bits []uint32, first int) { selectGeneric(dst, x, bits, first) }

func numbersVector(_ []uint32, _, _ uint64, _ uint32) (done int) { return 0 }
