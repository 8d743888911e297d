package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestOptimConformance leaves f16 out, which would build half as many programs again.
func TestOptimConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Optim(), optimImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOptimOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestOptimConformance$/./^vendor.opencl$/^f32$/^(plain|first_step_from_zero|copy_of_f32)$/^per_tensor=true$/^inv_scale=0.25$`)
}
