package softmax_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// The causal variant hides keys after the query.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	scores, _ := tensor.FromSlice([]float32{1, 1, 1, 1}, 1, 2, 2)
	shares, _ := tensor.FromSlice(make([]float32, 4), 1, 2, 2)
	causal := opmanager.MustBind(manager, softmax.ScaledUpperTriangMaskedSoftmaxForward)
	err := causal.Call(softmax.SoftmaxArgs{Input: scores, Output: shares, ScaleFactor: 1})
	fmt.Println(tensor.Data[float32](shares), err)
	// Output: [1 0 0.5 0.5] <nil>
}
