package opscases_test

import (
	"fmt"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
)

// A vendor checks an impl against the reference; in a Go test, RunAll does so for a whole source.
func Example() {
	var oracle, impl opregistry.Impl
	for _, i := range reference.Source().Impls {
		if i.Op == opregistry.Handle(norm.ResidualAdd) {
			oracle, impl = i, i
		}
	}
	impl.ID, impl.Kind, impl.Vendor = "vendor.acme", opregistry.KindVendor, "acme"
	impl.Run = func(_ *opregistry.Exec, a norm.ResidualAddArgs) error {
		return a.Output.SetFloat64s(a.A.Float64s()) // forgets b
	}
	results, err := opscases.All().Verify(impl, oracle)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.DType, r.Status())
	}
	// Output:
	// f32 fail
	// bf16 fail
	// f16 fail
	// f64 fail
}
