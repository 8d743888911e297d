package embedding_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/tensor"
)

// Tokens choose rows of a table.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	table, _ := tensor.FromSlice([]float32{0, 0, 1, 10, 2, 20}, 3, 2)
	tokens, _ := tensor.FromSlice([]int32{2, 0, 2})
	rows, _ := tensor.FromSlice(make([]float32, 6), 3, 2)
	embed := opmanager.MustBind(manager, embedding.EmbeddingFwd)
	err := embed.Call(embedding.EmbeddingFwdArgs{Indices: tokens, Weight: table, Output: rows})
	fmt.Println(tensor.Data[float32](rows), err)
	// Output: [2 20 0 0 2 20] <nil>
}
