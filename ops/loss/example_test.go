package loss_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

// Rows whose target is IgnoreIndex have no loss.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	logits, _ := tensor.FromSlice([]float32{0, 0, 0, 0, 5, 0, 0, 0}, 2, 4)
	targets, _ := tensor.FromSlice([]int32{1, -100})
	losses, _ := tensor.FromSlice(make([]float32, 2))
	lse, _ := tensor.FromSlice(make([]float32, 2))
	crossEntropy := opmanager.MustBind(manager, loss.CrossEntropyFwd)
	err := crossEntropy.Call(loss.CrossEntropyFwdArgs{
		Logits: logits, Targets: targets, Losses: losses, LSE: lse, IgnoreIndex: -100, Saved: new(opregistry.Saved),
	})
	fmt.Printf("%.4f %v\n", tensor.Data[float32](losses), err)
	// Output: [1.3863 0.0000] <nil>
}
