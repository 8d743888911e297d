package quant_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// The largest magnitude of a tensor decides its fp8 scale.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{1, -7, 3})
	amax, _ := tensor.FromSlice(make([]float32, 1))
	largest := opmanager.MustBind(manager, quant.ComputeAmax)
	err := largest.Call(quant.ComputeAmaxArgs{Input: x, Amax: amax})
	fmt.Println(tensor.Data[float32](amax), err)
	// Output: [7] <nil>
}
