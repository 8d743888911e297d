package fp8

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel"
)

// Prefetch asks the processor for rows of n elements, which lie at a pitch and will be used soon.
// It changes no data.
func Prefetch[T float32 | uint16 | byte](x []T, pitch, rows, n int) {
	if rows == 0 || n == 0 {
		return
	}
	x = x[:(rows-1)*pitch+n]
	size := int(unsafe.Sizeof(x[0]))
	kernel.PrefetchRows((*byte)(unsafe.Pointer(&x[0])), size*pitch, rows, size*n)
}
