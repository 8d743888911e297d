package policyfile_test

import (
	"context"
	"fmt"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// What a file gives is laid over another policy; errors name the line.
func Example() {
	layer, err := policyfile.Parse(context.Background(), "policy.yaml", []byte("prefer: vendor\ndeny_vendors: [acme]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := layer.Policy.Over(oppolicy.Default())
	fmt.Println(policy.Prefer, policy.Deny, policy.Sources[oppolicy.FieldPrefer])
	// Output: vendor [acme] policy.yaml:1
}
