package reference

import (
	"github.com/primus-fl/primus/ops/embedding"
)

// embeddingFwd implements embedding.EmbeddingFwd.
func embeddingFwd(a embedding.EmbeddingFwdArgs) error {
	h, weight := a.Weight.Shape().Cols(), a.Weight.Float64s()
	out := make([]float64, 0, a.Output.NumElements())
	for _, v := range indexes(a.Indices) {
		out = append(out, weight[v*h:(v+1)*h]...)
	}
	return a.Output.SetFloat64s(out)
}

// embeddingBwd implements embedding.EmbeddingBwd.
func embeddingBwd(a embedding.EmbeddingBwdArgs) error {
	h, grad := a.DWeight.Shape().Cols(), a.Grad.Float64s()
	dweight := make([]float64, a.DWeight.NumElements())
	if a.Accumulate {
		dweight = a.DWeight.Float64s()
	}
	for i, v := range indexes(a.Indices) {
		for j, d := range grad[i*h : (i+1)*h] {
			dweight[v*h+j] += d
		}
	}
	return a.DWeight.SetFloat64s(dweight)
}
