package rope_test

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// Each pair of a head is rotated by an angle that grows with the position.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{1, 0, 1, 0}, 2, 1, 1, 2)
	angles, _ := tensor.FromSlice([]float32{0, 0, math.Pi / 2, math.Pi / 2}, 2, 1, 1, 2)
	y, _ := tensor.FromSlice(make([]float32, 4), 2, 1, 1, 2)
	rotate := opmanager.MustBind(manager, rope.FusedRopeForward)
	err := rotate.Call(rope.FusedRopeArgs{Input: x, Freqs: angles, Output: y, QKVFormat: attention.SBHD, CPSize: 1})
	fmt.Printf("%.1f %v\n", tensor.Data[float32](y), err)
	// Output: [1.0 0.0 -0.0 1.0] <nil>
}
