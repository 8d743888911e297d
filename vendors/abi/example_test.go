package abi_test

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/vendors/abi"
)

// A program that builds plugins writes the header beside their source. Plugins export its entry
// point.
func Example() {
	fmt.Println("version", abi.Major, strings.Contains(abi.Header(), abi.EntryPoint))
	// Output: version 1 true
}
