package simd

import "fmt"

// Near asks for rows of cols elements, step elements apart, to be brought into a
// second-level cache. It is worth a call for short rows that lie apart, which a
// processor does not see coming. It changes nothing but times, and does nothing where
// there is no assembly.
func Near(src []float32, step, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if step < 0 {
		panic(fmt.Sprintf("BUG: simd: rows %d elements apart to bring near", step))
	}
	_ = src[(rows-1)*step+cols-1]
	near(&src[0], step, rows, cols)
}
