package optim

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/optim/optimtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestConformance leaves f16 out, which would build half as many programs again.
func TestConformance(t *testing.T) {
	opencltest.Conform(t, optimtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(plain|first_step_from_zero|copy_of_f32)$/^per_tensor=true$/^inv_scale=0.25$`)
}
