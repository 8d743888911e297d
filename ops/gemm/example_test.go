package gemm_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// A linear layer: the weight is [out, in], the input [rows, in], the output [rows, out].
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	weight, _ := tensor.FromSlice([]float32{1, 0, 0, 1, 1, 1}, 3, 2)
	x, _ := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	y, _ := tensor.FromSlice(make([]float32, 6), 2, 3)
	multiply := opmanager.MustBind(manager, gemm.GenericGemm)
	err := multiply.Call(gemm.GenericGemmArgs{A: weight, TransA: true, B: x, D: y})
	fmt.Println(tensor.Data[float32](y), err)
	// Output: [1 2 3 3 4 7] <nil>
}
