package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestLossConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Loss(), lossImpls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestLossOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestLossConformance$/./^vendor.opencl$/^f32$/^\[(5_7|4_33)\]$/^dense$/^i32$`)
}
