package softmax

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/softmax/softmaxtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, softmaxtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/^scaled_(aligned|masked|softmax)/^vendor.opencl$/^f32$/^\[2_1_5_130\]$/^dense$`)
}
