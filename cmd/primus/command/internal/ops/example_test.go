package ops_test

import (
	"fmt"
	"log"

	"github.com/primus-fl/primus/cmd/primus/command/internal/ops"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

func Example() {
	entries, err := ops.Parse("inventory.json", []byte(`[
		{"op": "gemm", "impl_id": "default.flagos", "kind": "flagos"},
		{"op": "gemm", "impl_id": "vendor.acme", "kind": "vendor", "vendor": "acme", "available": "no driver"}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	policy := oppolicy.Default()
	policy.Prefer = opregistry.KindVendor
	r, err := ops.Resolve(policy, "gemm", entries)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("selected", r.Selected)
	for _, rejected := range r.Rejected {
		fmt.Println("rejected", rejected.ID+":", rejected.Reason)
	}
	// Output:
	// selected default.flagos
	// rejected vendor.acme: unavailable: no driver
}
