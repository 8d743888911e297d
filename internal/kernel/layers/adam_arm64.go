//go:build !noasm

package layers

import "github.com/primus-fl/primus/internal/cpufeat"

func adamVector(p, m, v, g []float32, step *AdamStep) int {
	n, _ := adamLargestVector(p, m, v, g, step)
	return n
}

func adamLargestVector(p, m, v, g []float32, step *AdamStep) (done int, largest float32) {
	n := len(p) &^ 3
	if n == 0 || !cpufeat.Has(cpufeat.NEON) {
		return 0, 0
	}
	return n, adamNEON(&p[0], &m[0], &v[0], &g[0], n, step)
}

// adamNEON computes what adamGo does for n > 0 elements, a multiple of 4, and returns the largest
// magnitude of the new p.
//
//go:noescape
func adamNEON(p, m, v, grad *float32, n int, step *AdamStep) (largest float32)
