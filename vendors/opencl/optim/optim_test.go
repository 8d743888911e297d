package optim

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/optim/optimtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, optimtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(plain|in_place|copy_of_f32|first_step_from_zero)$`)
}
