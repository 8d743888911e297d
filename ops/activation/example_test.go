package activation_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/tensor"
)

// A gated activation halves the last axis.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{1, -1, 2, 3}, 1, 4)
	y, _ := tensor.FromSlice(make([]float32, 2), 1, 2)
	swiglu := opmanager.MustBind(manager, activation.SwiGLU)
	err := swiglu.Call(activation.ActivationArgs{Input: x, Output: y})
	fmt.Printf("%.3f %v\n", tensor.Data[float32](y), err)
	// Output: [1.462 -0.807] <nil>
}
