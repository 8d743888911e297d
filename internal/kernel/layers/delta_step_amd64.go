//go:build amd64 && !noasm

package layers

import (
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel"
)

// deltaStepVector returns how many columns it has done.
func deltaStepVector(state []float32, p *DeltaPosition, v, o []float32) (done int) {
	if cpufeat.Has(cpufeat.AVX512) {
		if done = len(v) &^ 15; done > 0 {
			deltaStepAVX512(&state[0], &p.K[0], &p.Q[0], &v[0], &o[0], len(p.K), done, len(v), p.Product, p.Decay, p.Beta)
		}
		return done
	}
	if done = kernel.WholeLanes(len(v)); done > 0 {
		deltaStepAVX2(&state[0], &p.K[0], &p.Q[0], &v[0], &o[0], len(p.K), done, len(v), p.Product, p.Decay, p.Beta)
	}
	return done
}

// The functions step are DeltaStep for the first cols > 0 columns, a multiple of the lanes of a
// vector, of rows > 0 that lie pitch elements apart.

//go:noescape
func deltaStepAVX2(state, k, q, v, o *float32, rows, cols, pitch int, product, decay, beta float32)

//go:noescape
func deltaStepAVX512(state, k, q, v, o *float32, rows, cols, pitch int, product, decay, beta float32)
