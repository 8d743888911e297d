package attention_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// Each query sees the keys up to its own position.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	q, _ := tensor.FromSlice([]float32{1, 0, 0, 1}, 1, 2, 1, 2)
	k, _ := tensor.FromSlice([]float32{1, 0, 0, 1}, 1, 2, 1, 2)
	v, _ := tensor.FromSlice([]float32{1, 2, 3, 4}, 1, 2, 1, 2)
	o, _ := tensor.FromSlice(make([]float32, 4), 1, 2, 1, 2)
	stats, _ := tensor.FromSlice(make([]float32, 2), 1, 1, 2, 1)
	attend := opmanager.MustBind(manager, attention.FusedAttnFwd)
	err := attend.Call(attention.FusedAttnFwdArgs{
		Q: q, K: k, V: v, O: o, Stats: stats, QKVFormat: attention.BSHD, AttnMaskType: attention.CausalMask, Saved: new(opregistry.Saved),
	})
	fmt.Printf("%.3f %v\n", tensor.Data[float32](o), err)
	// Output: [1.000 2.000 2.340 3.340] <nil>
}
