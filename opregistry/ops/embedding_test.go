package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// everySecond returns a view with gaps of n indexes.
func everySecond(n int) *tensor.Tensor {
	x, err := of(tensor.I32, 2*n).AsStrided([]int{n}, []int{2}, 0)
	if err != nil {
		panic(err)
	}
	return x
}

func TestEmbeddingFwd(t *testing.T) {
	type args = ops.EmbeddingFwdArgs
	good := func() args { return args{Indices: i64(0, 4, 2, 4, 1, 0), Weight: f32(5, 3), Output: f32(2, 3, 3)} }
	testValidation(t, ops.EmbeddingFwd, good, []refusal[args]{
		{"no weight", func(a *args) { a.Weight = nil }, "weight", "a tensor"},
		{"dtype of weight", func(a *args) { a.Weight = of(tensor.U8, 5, 3) }, "weight", "dtype f32, bf16, f16 or f64"},
		{"axes of weight", func(a *args) { a.Weight = f32(5, 3, 1) }, "weight", "2 axes"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"scalar output", func(a *args) { a.Output = f32() }, "output", "at least 1 axes"},
		{"no indices", func(a *args) { a.Indices = nil }, "indices", "a tensor"},
		{"dtype of indices", func(a *args) { a.Indices = f32(6) }, "indices", "dtype i32 or i64"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.BF16, 2, 3, 3) }, "output", "the dtype of weight, f32"},
		{"length of rows", func(a *args) { a.Output = f32(6, 4) }, "output", "rows of 3"},
		{"number of indices", func(a *args) { a.Indices = i64(0, 1) }, "indices", "6 elements (one a row)"},
		{"strided indices", func(a *args) { a.Indices = everySecond(6) }, "indices", "a contiguous tensor"},
		{"index too large", func(a *args) { a.Indices = i64(0, 1, 5, 0, 0, 0) }, "indices", "values in [0, 5)"},
		{"negative index", func(a *args) { a.Indices = i64(0, 1, 4, 0, 0, -1) }, "indices", "values in [0, 5)"},
		{"i32 index too large", func(a *args) { a.Indices = i32(0, 1, 5, 0, 0, 0) }, "indices", "values in [0, 5)"},
		{"negative i32 index", func(a *args) { a.Indices = i32(0, 1, 4, 0, 0, -100) }, "indices", "values in [0, 5)"},
		{"output over weight", func(a *args) { a.Weight = view(a.Output, 5, 3) }, "output", "memory apart from weight"},
		{"output over indices", func(a *args) {
			memory := make([]byte, 4*18)
			a.Output = must(tensor.FromBytes(memory, tensor.F32, 2, 3, 3))
			a.Indices = must(tensor.FromBytes(memory[:24], tensor.I32, 6))
		}, "output", "memory apart from indices"},
	})
	testAccepted(t, ops.EmbeddingFwd, good, map[string]func(a *args){
		"i32":      func(a *args) { a.Indices = i32(0, 1, 2, 3, 4, 0) },
		"nothing":  func(a *args) { *a = args{Indices: i32(), Weight: f32(0, 3), Output: f32(0, 3)} },
		"one row":  func(a *args) { a.Indices, a.Output = i32(4), f32(3) },
		"no width": func(a *args) { a.Weight, a.Output = f32(5, 0), f32(6, 0) },
	})
	testOperands(t, ops.EmbeddingFwd, good(), access{"indices": opregistry.AccessRead, "weight": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestEmbeddingBwd(t *testing.T) {
	type args = ops.EmbeddingBwdArgs
	good := func() args { return args{Grad: f32(3, 4), Indices: i32(1, 0, 1), DWeight: f32(2, 4)} }
	testValidation(t, ops.EmbeddingBwd, good, []refusal[args]{
		{"no dweight", func(a *args) { a.DWeight = nil }, "dweight", "a tensor"},
		{"axes of dweight", func(a *args) { a.DWeight = f32(8) }, "dweight", "2 axes"},
		{"no grad", func(a *args) { a.Grad = nil }, "grad", "a tensor"},
		{"dtype of grad", func(a *args) { a.Grad = of(tensor.F16, 3, 4) }, "grad", "the dtype of dweight, f32"},
		{"length of rows", func(a *args) { a.Grad = f32(4, 3) }, "grad", "rows of 4"},
		{"number of indices", func(a *args) { a.Indices = i32(1) }, "indices", "3 elements (one a row)"},
		{"index too large", func(a *args) { a.Indices = i32(0, 2, 0) }, "indices", "values in [0, 2)"},
		{"dweight over grad", func(a *args) { a.DWeight = view(a.Grad, 2, 4) }, "dweight", "memory apart from grad"},
		{"dweight over indices", func(a *args) {
			memory := make([]byte, 32)
			a.DWeight = must(tensor.FromBytes(memory, tensor.F32, 2, 4))
			a.Indices = must(tensor.FromBytes(memory[:12], tensor.I32, 3))
		}, "dweight", "memory apart from indices"},
	})
	a := good()
	testOperands(t, ops.EmbeddingBwd, a, access{"grad": opregistry.AccessRead, "indices": opregistry.AccessRead, "dweight": opregistry.AccessWrite})
	a.Accumulate = true
	testOperands(t, ops.EmbeddingBwd, a, access{"grad": opregistry.AccessRead, "indices": opregistry.AccessRead, "dweight": opregistry.AccessUpdate})
}

func must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}
