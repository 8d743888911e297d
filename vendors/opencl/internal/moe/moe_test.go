package moe

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/moe/moetest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// TestConformance leaves f16 out, which would build half as many programs again.
func TestConformance(t *testing.T) {
	opencltest.Conform(t, moetest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(tokens5,h3,experts4,topk2,rows7|tokens7,experts5,topk5|\[5_8\])$`)
}
