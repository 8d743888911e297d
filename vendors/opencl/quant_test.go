package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

func TestQuantConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Quant(), quantImpls(), reference.Source(), opstest.WithDTypes(Storage...))
}

func TestQuantOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestQuantConformance$/./^vendor.opencl$/^f32$/^(delayed|block|mxfp8|most_recent)$/^(pow2=false|dense)$/^2d=false$/^f8e4m3$/^(\[2_2\]|epsilon=0)$`)
}
