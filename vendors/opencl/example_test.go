package opencl_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl"
)

// A source can be registered whether or not there is a device; its impls serve calls whose operands
// lie on one.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(opencl.Source()); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("rmsnorm_fwd")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output: vendor.opencl vendor opencl
}
