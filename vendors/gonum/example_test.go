package gonum_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/gonum"
)

// The vendor needs no library and serves one op.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(gonum.Source()); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("generic_gemm")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output: vendor.gonum vendor gonum
}
