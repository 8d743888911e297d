package dropout_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
)

// A seed and an offset give the same mask on every device, a bit for each element.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{1, 1, 1, 1, 1, 1, 1, 1})
	y, _ := tensor.FromSlice(make([]float32, 8))
	mask, _ := tensor.FromSlice(make([]uint8, 1))
	drop := opmanager.MustBind(manager, dropout.DropoutFwd)
	err := drop.Call(dropout.DropoutFwdArgs{Input: x, Out: y, Mask: mask, DropoutProbability: 0.5, Seed: 1, Saved: new(opregistry.Saved)})
	fmt.Printf("%v %08b %v\n", tensor.Data[float32](y), tensor.Data[uint8](mask), err)
	// Output: [2 2 2 2 2 2 0 2] [10111111] <nil>
}
