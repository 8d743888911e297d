//go:build amd64 && !noasm

package gemm

// prefetchRows prefetches every cache line that rows of cols elements touch; rows and cols are at
// least 1.
//
//go:noescape
func prefetchRows(src *float32, step, rows, cols int)
