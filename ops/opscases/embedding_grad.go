package opscases

import (
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func embeddingGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("repeated", embedding.EmbeddingFwd, embedding.EmbeddingBwd, func(s *opstest.Stage) opstest.Derivation[embedding.EmbeddingFwdArgs, embedding.EmbeddingBwdArgs] {
		index := s.Values(tensor.I64, 3, 0, 3, 3, 1)
		w, y, dy, dw := s.F64In(5, 3), s.F64Out(5, 3), s.F64In(5, 3), s.F64Out(5, 3)
		return opstest.Derivation[embedding.EmbeddingFwdArgs, embedding.EmbeddingBwdArgs]{
			Forward:  []embedding.EmbeddingFwdArgs{{Indices: index, Weight: w, Output: y}},
			Backward: []embedding.EmbeddingBwdArgs{{Grad: dy, Indices: index, DWeight: dw}},
			Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "weight", X: w, DX: dw}},
		}
	})}
}
