package quant

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/quant/quanttest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, quanttest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(delayed|block|mxfp8|most_recent)$/^(pow2=false|dense)$/^2d=false$/^f8e4m3$/^(\[2_2\]|epsilon=0)$`)
}
