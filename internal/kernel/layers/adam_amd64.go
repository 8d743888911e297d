//go:build amd64 && !noasm

package layers

import "github.com/primus-fl/primus/internal/kernel"

func adamVector(p, m, v, g []float32, step *AdamStep) int {
	n := kernel.WholeLanes(len(p))
	if n > 0 {
		adamAVX2(&p[0], &m[0], &v[0], &g[0], n, step)
	}
	return n
}

func adamLargestVector(p, m, v, g []float32, step *AdamStep) (done int, largest float32) {
	n := kernel.WholeLanes(len(p))
	if n > 0 {
		largest = adamLargestAVX2(&p[0], &m[0], &v[0], &g[0], n, step)
	}
	return n, largest
}

// adamAVX2 computes what adamGo does for n > 0 elements, a multiple of 8.
//
//go:noescape
func adamAVX2(p, m, v, grad *float32, n int, step *AdamStep)

// adamLargestAVX2 is adamAVX2, and returns the largest magnitude of the new p.
//
//go:noescape
func adamLargestAVX2(p, m, v, grad *float32, n int, step *AdamStep) (largest float32)
