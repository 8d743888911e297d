package norm_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// A layer binds the op once and calls it for each batch. The backward op reads rsigma and Saved.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{3, 4, 6, 8}, 2, 2)
	weight, _ := tensor.FromSlice([]float32{1, 2})
	y, _ := tensor.FromSlice(make([]float32, 4), 2, 2)
	rsigma, _ := tensor.FromSlice(make([]float32, 2))
	rmsnorm := opmanager.MustBind(manager, norm.RMSNormFwd)
	err := rmsnorm.Call(norm.RMSNormFwdArgs{Input: x, Weight: weight, Output: y, RSigma: rsigma, Eps: 1e-5, Saved: new(opregistry.Saved)})
	fmt.Printf("%.3f %v\n", tensor.Data[float32](y), err)
	// Output: [0.849 2.263 0.849 2.263] <nil>
}
