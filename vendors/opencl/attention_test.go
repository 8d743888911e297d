package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestAttentionConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Attention(), attentionImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestAttentionOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, "^TestAttentionConformance$/^(fused_attn_(fwd|bwd)|copy_to_kv_cache)$/^vendor.opencl$/^f32$/^(scale|everything|slots_fall)$")
}
