package clblast_test

import (
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/clblast"
)

func TestConformance(t *testing.T) {
	b := opencltest.Backend(t)
	lib := clblast.New(clblast.Options{})
	if err := lib.Available(); err != nil {
		t.Skip(err)
	}
	opscases.Gemm().RunAll(t, ondevice.Source(b, lib.Source(), nil), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.F64))
}
