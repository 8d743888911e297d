package moe_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// Tokens are sorted by the expert that each of them goes to.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	tokens, _ := tensor.FromSlice([]float32{1, 2, 3}, 3, 1)
	experts, _ := tensor.FromSlice([]int32{1, 0, 1}, 3, 1)
	sorted, _ := tensor.FromSlice(make([]float32, 3), 3, 1)
	places, _ := tensor.FromSlice(make([]int32, 3))
	permute := opmanager.MustBind(manager, moe.MoEPermuteFwd)
	err := permute.Call(moe.MoEPermuteFwdArgs{Input: tokens, Indices: experts, Output: sorted, RowIDMap: places, Saved: new(opregistry.Saved)})
	fmt.Println(tensor.Data[float32](sorted), tensor.Data[int32](places), err)
	// Output: [2 1 3] [1 0 2] <nil>
}
