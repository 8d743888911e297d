package safetensors_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/primus-fl/primus/internal/safetensors"
)

func Example() {
	weight, err := safetensors.FromSlice("lm_head.weight", []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, []safetensors.Entry{weight}, map[string]string{"format": "pt"}); err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.NewFile(context.Background(), "model.safetensors", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	values, shape, err := safetensors.Read[float32](f, "lm_head.weight")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Names(), shape, values)
	// Output: [lm_head.weight] [2 3] [1 2 3 4 5 6]
}
