package primus_test

import (
	"fmt"
	"io/fs"

	"github.com/primus-fl/primus"
)

func Example() {
	experiments, err := fs.Glob(primus.Files(), "examples/native/configs/llama_2M-*.yaml")
	if err != nil {
		panic(err)
	}
	for _, file := range experiments {
		fmt.Println(file)
	}
	// Output:
	// examples/native/configs/llama_2M-dpo.yaml
	// examples/native/configs/llama_2M-lora.yaml
	// examples/native/configs/llama_2M-pretrain.yaml
	// examples/native/configs/llama_2M-sft.yaml
}
