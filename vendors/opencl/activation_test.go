package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestActivationConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Activation(), Impls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestActivationOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestActivationConformance$/./^vendor.opencl$/^f32$/^\[(3_7|11)\]$`)
}
