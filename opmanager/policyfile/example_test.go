package policyfile_test

import (
	"fmt"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// What a file sets comes on top of another policy; errors name the line.
func Example() {
	overlay, err := policyfile.Parse("policy.yaml", []byte("prefer: vendor\ndeny_vendors: [acme]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := overlay.Apply(oppolicy.Default())
	fmt.Println(policy.Prefer, policy.Deny, policy.Sources[oppolicy.FieldPrefer])
	// Output: vendor [acme] policy.yaml:1
}
