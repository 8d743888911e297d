//go:build amd64 && !noasm

package simd

// near asks for every line that rows of cols elements touch, both at least 1.
//
//go:noescape
func near(src *float32, step, rows, cols int)
