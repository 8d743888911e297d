// Package embedding has the oracles of the ops of the family embedding.
package embedding

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(embedding.EmbeddingFwd, embeddingFwd),
		host.Impl(embedding.EmbeddingBwd, embeddingBwd),
	}
}
