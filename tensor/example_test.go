package tensor_test

import (
	"fmt"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/tensor"
)

// Views share memory: what is written through one is seen through the other.
func Example() {
	x, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		panic(err)
	}
	columns, err := x.Transpose(0, 1)
	if err != nil {
		panic(err)
	}
	columns.Set(30, 2, 0)
	fmt.Println(columns)
	fmt.Println(tensor.Data[float32](x))
	// Output:
	// f32[3 2] on cpu:0 strides [1 3]
	// [1 2 30 4 5 6]
}

// Memory of a device backend belongs to the caller of New.
func ExampleNew() {
	backend := cpu.New()
	defer backend.Close()
	x, err := tensor.New(backend, tensor.BF16, 2, 2)
	if err != nil {
		panic(err)
	}
	defer x.Release()
	x.Set(0.1, 0, 0)
	fmt.Println(x, x.Float64s())
	// Output: bf16[2 2] on cpu:0 [0.10009765625 0 0 0]
}

func ExampleOverlap() {
	fused, err := tensor.FromSlice(make([]float32, 4*6), 4, 6)
	if err != nil {
		panic(err)
	}
	query, _ := fused.Slice(1, 0, 2)
	key, _ := fused.Slice(1, 2, 4)
	wide, _ := fused.Slice(1, 1, 4)
	fmt.Println(tensor.Overlap(query, key), tensor.Overlap(query, wide))
	// Output: false true
}

func ExampleTensor_Reshape() {
	x, err := tensor.FromSlice(make([]float32, 24), 2, 3, 4)
	if err != nil {
		panic(err)
	}
	rows, err := x.Reshape(-1, 4)
	fmt.Println(rows, err)
	_, err = x.Reshape(5, -1)
	fmt.Println(err)
	// Output:
	// f32[6 4] on cpu:0 <nil>
	// tensor: Reshape: given shape [5 -1] for 24 elements, want axes that divide them
}
