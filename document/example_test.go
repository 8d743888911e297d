package document_test

import (
	"fmt"

	"github.com/primus-fl/primus/document"
)

func ExampleParseOverrides() {
	overrides, _, err := document.ParseOverrides([]string{"lr=1e-4", "--model.layers", "24", "--resume"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lr, _ := overrides.Get("lr")
	layers, _ := overrides.Get("model.layers")
	fmt.Println(lr.Kind(), layers.Any(), layers.Origin())

	_, _, err = document.ParseOverrides([]string{"a=1", "a.b=2"})
	fmt.Println(err)
	// Output:
	// float 24 override 2 "--model.layers 24"
	// override 2 "a.b=2": a.b cannot be set because override 1 "a=1" sets a to int 1; drop one of the two
}

func ExampleDecode() {
	var train struct {
		LR    float64 `param:"lr"`
		Iters int     `param:"train_iters,required"`
	}
	params, _, err := document.ParseOverrides([]string{"lr=fast", "trian_iters=10"})
	if err != nil {
		fmt.Println(err)
		return
	}
	unknown, err := document.Decode(params, &train)
	fmt.Println(err)
	fmt.Println(unknown[0].Path, "->", unknown[0].Nearest)
	// Output:
	// override 1 "lr=fast": lr: given string "fast", want a number
	// train_iters: required key is missing
	// trian_iters -> train_iters
}
