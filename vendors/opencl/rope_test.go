package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestRopeConformance leaves f16 out, which would build half as many programs again.
func TestRopeConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Rope(), ropeImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestRopeOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestRopeConformance$/./^vendor.opencl$/^f32$/^(\[2_7_3_10\],d2=4|thd)$`)
}
