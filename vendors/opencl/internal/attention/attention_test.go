package attention

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/attention/attentiontest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, attentiontest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, "^TestConformance$/^(fused_attn_(fwd|bwd)|copy_to_kv_cache)$/^vendor.opencl$/^f32$/^(scale|everything|slots_fall)$")
}
