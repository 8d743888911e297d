package embedding_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestEmbeddingFwd(t *testing.T) {
	type args = embedding.EmbeddingFwdArgs
	good := func() args {
		return args{Indices: checktest.I64(0, 4, 2, 4, 1, 0), Weight: checktest.F32(5, 3), Output: checktest.F32(2, 3, 3)}
	}
	checktest.Validation(t, embedding.EmbeddingFwd, good, []checktest.Refusal[args]{
		{Name: "no weight", Edit: func(a *args) { a.Weight = nil }, Operand: "weight", Want: "a tensor"},
		{Name: "dtype of weight", Edit: func(a *args) { a.Weight = checktest.Zeros(tensor.U8, 5, 3) }, Operand: "weight", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "axes of weight", Edit: func(a *args) { a.Weight = checktest.F32(5, 3, 1) }, Operand: "weight", Want: "shape [vocab h]"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "scalar output", Edit: func(a *args) { a.Output = checktest.F32() }, Operand: "output", Want: "shape [.. 3], as [.. h]"},
		{Name: "no indices", Edit: func(a *args) { a.Indices = nil }, Operand: "indices", Want: "a tensor"},
		{Name: "dtype of indices", Edit: func(a *args) { a.Indices = checktest.F32(6) }, Operand: "indices", Want: "dtype i32 or i64"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.BF16, 2, 3, 3) }, Operand: "output", Want: "the dtype of weight, f32"},
		{Name: "length of rows", Edit: func(a *args) { a.Output = checktest.F32(6, 4) }, Operand: "output", Want: "shape [.. 3], as [.. h]"},
		{Name: "number of indices", Edit: func(a *args) { a.Indices = checktest.I64(0, 1) }, Operand: "indices", Want: "6 elements (rows)"},
		{Name: "strided indices", Edit: func(a *args) { a.Indices = checktest.EverySecond(6) }, Operand: "indices", Want: "a contiguous tensor"},
		{Name: "index too large", Edit: func(a *args) { a.Indices = checktest.I64(0, 1, 5, 0, 0, 0) }, Operand: "indices", Want: "values in [0, 5)"},
		{Name: "negative index", Edit: func(a *args) { a.Indices = checktest.I64(0, 1, 4, 0, 0, -1) }, Operand: "indices", Want: "values in [0, 5)"},
		{Name: "i32 index too large", Edit: func(a *args) { a.Indices = checktest.I32(0, 1, 5, 0, 0, 0) }, Operand: "indices", Want: "values in [0, 5)"},
		{Name: "negative i32 index", Edit: func(a *args) { a.Indices = checktest.I32(0, 1, 4, 0, 0, -100) }, Operand: "indices", Want: "values in [0, 5)"},
		{Name: "output over weight", Edit: func(a *args) { a.Weight = checktest.View(a.Output, 5, 3) }, Operand: "output", Want: "memory apart from weight"},
		{Name: "output over indices", Edit: func(a *args) {
			memory := make([]byte, 4*18)
			a.Output = checktest.Must(tensor.FromBytes(memory, tensor.F32, 2, 3, 3))
			a.Indices = checktest.Must(tensor.FromBytes(memory[:24], tensor.I32, 6))
		}, Operand: "output", Want: "memory apart from indices"},
	})
	checktest.Accepted(t, embedding.EmbeddingFwd, good, map[string]func(a *args){
		"i32": func(a *args) { a.Indices = checktest.I32(0, 1, 2, 3, 4, 0) },
		"nothing": func(a *args) {
			*a = args{Indices: checktest.I32(), Weight: checktest.F32(0, 3), Output: checktest.F32(0, 3)}
		},
		"one row":  func(a *args) { a.Indices, a.Output = checktest.I32(4), checktest.F32(3) },
		"no width": func(a *args) { a.Weight, a.Output = checktest.F32(5, 0), checktest.F32(6, 0) },
	})
	checktest.Operands(t, embedding.EmbeddingFwd, good(), checktest.Access{"indices": opregistry.AccessRead, "weight": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestEmbeddingBwd(t *testing.T) {
	type args = embedding.EmbeddingBwdArgs
	good := func() args {
		return args{Grad: checktest.F32(3, 4), Indices: checktest.I32(1, 0, 1), DWeight: checktest.F32(2, 4)}
	}
	checktest.Validation(t, embedding.EmbeddingBwd, good, []checktest.Refusal[args]{
		{Name: "no dweight", Edit: func(a *args) { a.DWeight = nil }, Operand: "dweight", Want: "a tensor"},
		{Name: "axes of dweight", Edit: func(a *args) { a.DWeight = checktest.F32(8) }, Operand: "dweight", Want: "shape [vocab 4], as [vocab h]"},
		{Name: "no grad", Edit: func(a *args) { a.Grad = nil }, Operand: "grad", Want: "a tensor"},
		{Name: "dtype of dweight", Edit: func(a *args) { a.DWeight = checktest.I32(2, 4) }, Operand: "dweight", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "length of rows", Edit: func(a *args) { a.Grad = checktest.F32(4, 3) }, Operand: "dweight", Want: "shape [2 3], as [vocab h]"},
		{Name: "number of indices", Edit: func(a *args) { a.Indices = checktest.I32(1) }, Operand: "indices", Want: "3 elements (rows)"},
		{Name: "index too large", Edit: func(a *args) { a.Indices = checktest.I32(0, 2, 0) }, Operand: "indices", Want: "values in [0, 2)"},
		{Name: "dweight over grad", Edit: func(a *args) { a.DWeight = checktest.View(a.Grad, 2, 4) }, Operand: "dweight", Want: "memory apart from grad"},
		{Name: "dweight over indices", Edit: func(a *args) {
			memory := make([]byte, 32)
			a.DWeight = checktest.Must(tensor.FromBytes(memory, tensor.F32, 2, 4))
			a.Indices = checktest.Must(tensor.FromBytes(memory[:12], tensor.I32, 3))
		}, Operand: "dweight", Want: "memory apart from indices"},
	})
	a := good()
	checktest.Operands(t, embedding.EmbeddingBwd, a, checktest.Access{"grad": opregistry.AccessRead, "indices": opregistry.AccessRead, "dweight": opregistry.AccessWrite})
	a.Accumulate = true
	checktest.Operands(t, embedding.EmbeddingBwd, a, checktest.Access{"grad": opregistry.AccessRead, "indices": opregistry.AccessRead, "dweight": opregistry.AccessUpdate})
}
