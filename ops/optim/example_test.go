package optim_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// The norm of all gradients, for clipping.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	gradient, _ := tensor.FromSlice([]float32{3, 0})
	other, _ := tensor.FromSlice([]float32{0, 4})
	noop, _ := tensor.FromSlice(make([]int32, 1))
	norm, _ := tensor.FromSlice(make([]float32, 1))
	l2norm := opmanager.MustBind(manager, optim.MultiTensorL2Norm)
	err := l2norm.Call(optim.MultiTensorL2NormArgs{NoopFlag: noop, TensorLists: [][]*tensor.Tensor{{gradient, other}}, Norm: norm})
	fmt.Println(tensor.Data[float32](norm), err)
	// Output: [5] <nil>
}
