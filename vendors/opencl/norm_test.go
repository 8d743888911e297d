package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestNormConformance leaves f16 out, which would build half as many programs again.
func TestNormConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Norm(), normImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestNormOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestNormConformance$/./^vendor.opencl$/^f32$/^\[(3_5|7_129|9)\]$/^dense$`)
}
