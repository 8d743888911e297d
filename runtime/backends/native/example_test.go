package native_test

import (
	"fmt"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
)

// A program registers the backend; experiments choose it with framework: native.
func Example() {
	registry, err := backend.NewRegistry(native.Factory())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory, err := registry.Get(native.Framework)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(factory.Framework, factory.New().Stages())
	// Output: native [pretrain sft dpo]
}
