package collective_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// A job of one rank needs no library. Vendors such as mpi serve larger groups with the same call.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	gradient, _ := tensor.FromSlice([]float32{1, 2, 3})
	reduce := opmanager.MustBind(manager, collective.AllReduce)
	err := reduce.Call(collective.AllReduceArgs{Input: gradient, Output: gradient, Reduction: collective.Sum, Group: collective.Group{Rank: 0, Ranks: 1}})
	fmt.Println(tensor.Data[float32](gradient), err)
	// Output: [1 2 3] <nil>
}
