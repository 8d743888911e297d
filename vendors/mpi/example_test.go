package mpi_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/mpi"
)

// A source can be registered whether or not a library is installed; its impls are used only where
// they are available.
func Example() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(mpi.New(mpi.Options{}).Source()); err != nil {
		fmt.Println(err)
		return
	}
	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("all_reduce")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output:
	// vendor.openmpi vendor openmpi
	// vendor.mpich vendor mpich
	// vendor.mpi_abi vendor mpi_abi
}
