package attention

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/attention/attentiontest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, attentiontest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, "^TestConformance$/^(fused_attn_(fwd|bwd)|copy_to_kv_cache)$/^vendor.opencl$/^f32$/^(scale|everything|slots_fall)$")
}
