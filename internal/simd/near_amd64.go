//go:build amd64 && !noasm

package simd

// near prefetches every cache line that rows of cols elements touch; rows and cols are at least 1.
//
//go:noescape
func near(src *float32, step, rows, cols int)
