// Package embeddingtest has the conformance cases of package embedding.
package embeddingtest

import (
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package embedding.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[embedding.EmbeddingFwdArgs]{Op: embedding.EmbeddingFwd, Cases: embeddingFwdCases}.Suite(),
			opstest.Spec[embedding.EmbeddingBwdArgs]{Op: embedding.EmbeddingBwd, Cases: embeddingBwdCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: embedding.EmbeddingBwd, Forward: embedding.EmbeddingFwd, Cases: embeddingGradCases},
		},
	}
}
