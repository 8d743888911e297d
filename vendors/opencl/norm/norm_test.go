package norm

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/norm/normtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, normtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^\[(3_5|7_129|9)\]$/^dense$`)
}
