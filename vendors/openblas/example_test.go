package openblas_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/openblas"
)

// A source can be registered whether or not the library is installed; its impl is used only where
// it is available.
func Example() {
	lib := openblas.New(openblas.Options{Threads: 2})
	registry := opregistry.NewRegistry()
	if err := registry.Register(lib.Source()); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("generic_gemm")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output: vendor.openblas vendor openblas
}
