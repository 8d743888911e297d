package rope

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/rope/ropetest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, ropetest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(\[2_7_3_10\],d2=4|thd)$`)
}
