package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestSoftmaxConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Softmax(), softmaxImpls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestSoftmaxOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestSoftmaxConformance$/^scaled_(aligned|masked|softmax)/^vendor.opencl$/^f32$/^\[2_1_5_130\]$/^dense$`)
}
