package oppolicy_test

import (
	"fmt"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// A policy is a value: copy it and change the copy. Order says which tokens rank the impls of an
// op.
func Example() {
	policy := oppolicy.Default()
	policy.Prefer = opregistry.KindVendor
	policy.Deny = []string{"acme"}
	fallback, err := oppolicy.ParseToken("reference")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy.PerOp = []oppolicy.OpRule{{Pattern: "rmsnorm_*", Order: []oppolicy.Token{fallback}}}
	for _, op := range []string{"rmsnorm_fwd", "generic_gemm"} {
		order, _ := policy.Order(op)
		fmt.Println(op, oppolicy.FormatOrder(order))
	}
	// Output:
	// rmsnorm_fwd reference
	// generic_gemm vendor|flagos|reference
}
