package clblast_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/clblast"
)

// A source can be registered whether or not the library is installed; its impl is used only where
// it is available.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(clblast.New(clblast.Options{}).Source()); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("generic_gemm")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output: vendor.clblast vendor clblast
}
