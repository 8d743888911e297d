package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestEmbeddingConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Embedding(), embeddingImpls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestEmbeddingOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestEmbeddingConformance$/./^vendor.opencl$/^f32$/^vocab(5,h3,n9|17,h64,n33)$/^dense$/^i32$`)
}
