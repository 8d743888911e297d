package moe

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/moe/moetest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, moetest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, `^TestConformance$/./^vendor.opencl$/^f32$/^(tokens5,h3,experts4,topk2,rows7|tokens7,experts5,topk5|\[5_8\])$`)
}
