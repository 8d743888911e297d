package rope

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/rope/ropetest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestConformance leaves f16 out, which would build half as many programs again.
func TestConformance(t *testing.T) {
	opencltest.Conform(t, ropetest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(\[2_7_3_10\],d2=4|thd)$`)
}
