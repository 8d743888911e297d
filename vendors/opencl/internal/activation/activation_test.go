package activation

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/activation/activationtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, activationtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^\[(3_7|11)\]$`)
}
