package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestDropoutConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Dropout(), dropoutImpls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestDropoutOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestDropoutConformance$/./^vendor.opencl$/^f32$/^\[(3_5|33_65)\]$/^dense$`)
}
