package formats_test

import (
	"context"
	"fmt"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
)

// A document is read in one format and written in another. Values know where they were written.
func Example() {
	root, _, err := document.Parse(context.Background(), formats.YAML{}, "exp.yaml", []byte("lr: 1.0e-3\nlayers: [1, 2]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := root.Map()
	text, err := formats.TOML{}.Render(m, true)
	fmt.Print(string(text))
	fmt.Println(err)
	// Output:
	// lr = 0.001 # exp.yaml:1:5
	// layers = [1, 2] # exp.yaml:2:9
	// <nil>
}
