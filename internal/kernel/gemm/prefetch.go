package gemm

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel"
)

// Prefetch asks the processor to bring rows of cols elements, step elements apart, into a
// second-level cache. It is worth a call for short rows that lie apart, which a processor does not
// predict. It does not change any data, and it does nothing where there is no assembly.
func Prefetch(src []float32, step, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if step < 0 {
		panic(fmt.Sprintf("BUG: gemm: rows %d elements apart to prefetch", step))
	}
	if end := (rows-1)*step + cols; end > len(src) { // an index expression would count as a read, which races with writes
		panic(fmt.Sprintf("BUG: gemm: %d elements to prefetch of %d", end, len(src)))
	}
	const float = int(unsafe.Sizeof(src[0]))
	kernel.PrefetchRows((*byte)(unsafe.Pointer(&src[0])), float*step, rows, float*cols)
}
