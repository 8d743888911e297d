package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command"
)

// A program of its own runs the command line, here with the words that a user would type.
func Example() {
	var out bytes.Buffer
	code := command.Main([]string{"ops", "describe", "residual_add", "-o", "json"}, command.Streams{Out: &out, Err: os.Stderr})
	var ops []struct{ Op, Doc string }
	if err := json.Unmarshal(out.Bytes(), &ops); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ops[0].Op+":", ops[0].Doc)
	fmt.Println("exit code", code)
	// Output:
	// residual_add: elementwise sum of two tensors
	// exit code 0
}
