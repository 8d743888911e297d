package loader_test

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/vendors/loader"
)

// Names are tried in order. The error says of each why it was not opened.
func Example() {
	_, err := loader.Open("/nonexistent/libacme.so.2", "/nonexistent/libacme.so")
	if failed, ok := errors.AsType[*loader.OpenError](err); ok {
		for _, attempt := range failed.Attempts {
			fmt.Println(attempt.Name)
		}
	}
	// Output:
	// /nonexistent/libacme.so.2
	// /nonexistent/libacme.so
}
