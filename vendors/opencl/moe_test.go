package opencl

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestMoeConformance leaves f16 out, which would build half as many programs again.
func TestMoeConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Moe(), moeImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestMoeOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestMoeConformance$/./^vendor.opencl$/^f32$/^(tokens5,h3,experts4,topk2,rows7|tokens7,experts5,topk5|\[5_8\])$`)
}
