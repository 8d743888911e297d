package reference_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// A program registers the source and calls ops through a manager.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{1, 2, 3})
	err := opmanager.MustBind(manager, norm.ResidualAdd).Call(norm.ResidualAddArgs{A: x, B: x, Output: x})
	fmt.Println(tensor.Data[float32](x), err)
	// Output: [2 4 6] <nil>
}
