package ops_test

import (
	"fmt"

	"github.com/primus-fl/primus/ops"
)

// A program can ask the catalogue what an op does and which arguments it takes.
func Example() {
	for _, op := range ops.All() {
		if op.Name() != "residual_add" {
			continue
		}
		fmt.Println(op.Name()+":", op.Doc())
		for _, p := range op.Params() {
			fmt.Println(p.Name, p.Access)
		}
	}
	// Output:
	// residual_add: elementwise sum of two tensors
	// a read
	// b read
	// output write
}
