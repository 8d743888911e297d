package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func list() []*tensor.Tensor { return []*tensor.Tensor{f32(3), f32(2, 2)} }

func TestMultiTensorAdam(t *testing.T) {
	type args = ops.MultiTensorAdamArgs
	good := func() args {
		return args{
			NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list(), list(), list(), list(), list()},
			LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1, Mode: ops.AdamDecay,
		}
	}
	testValidation(t, ops.MultiTensorAdam, good, []refusal[args]{
		{"three lists", func(a *args) { a.TensorLists = a.TensorLists[:3] }, "tensor_lists", "4 lists (g, p, m, v) or 5 (and master)"},
		{"six lists", func(a *args) { a.TensorLists = append(a.TensorLists, list()) }, "tensor_lists", "4 lists (g, p, m, v) or 5 (and master)"},
		{"no flag", func(a *args) { a.NoopFlag = nil }, "noop_flag", "a tensor"},
		{"dtype of flag", func(a *args) { a.NoopFlag = f32(1) }, "noop_flag", "dtype i32"},
		{"length of flag", func(a *args) { a.NoopFlag = i32(0, 0) }, "noop_flag", "1 elements"},
		{"length of a list", func(a *args) { a.TensorLists[2] = list()[:1] }, "tensor_lists[2]", "2 tensors, as list 0"},
		{"nil tensor", func(a *args) { a.TensorLists[0][1] = nil }, "tensor_lists[0][1]", "a tensor"},
		{"dtype", func(a *args) { a.TensorLists[1][0] = of(tensor.I64, 3) }, "tensor_lists[1][0]", "dtype f32, bf16, f16 or f64"},
		{"shape", func(a *args) { a.TensorLists[3][1] = f32(4) }, "tensor_lists[3][1]", "the shape of tensor_lists[0][1], [2 2]"},
		{"dtype of master", func(a *args) { a.TensorLists[4][0] = of(tensor.BF16, 3) }, "tensor_lists[4][0]", "dtype f32"},
		{"step 0", func(a *args) { a.Step = 0 }, "step", "a step >= 1"},
		{"mode", func(a *args) { a.Mode = 2 }, "mode", "0 (L2) or 1 (AdamW)"},
		{"beta1 of 1", func(a *args) { a.Beta1 = 1 }, "beta1, beta2", "numbers in [0, 1)"},
		{"negative beta1", func(a *args) { a.Beta1 = -0.1 }, "beta1, beta2", "numbers in [0, 1)"},
		{"beta2 of 1", func(a *args) { a.Beta2 = 1 }, "beta1, beta2", "numbers in [0, 1)"},
		{"beta2 of NaN", func(a *args) { a.Beta2 = float32(math.NaN()) }, "beta1, beta2", "numbers in [0, 1)"},
	})
	testAccepted(t, ops.MultiTensorAdam, good, map[string]func(a *args){
		"four lists":   func(a *args) { a.TensorLists = a.TensorLists[:4] },
		"l2":           func(a *args) { a.Mode = ops.AdamL2 },
		"empty lists":  func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 4) },
		"mixed dtypes": func(a *args) { a.TensorLists[0][0], a.TensorLists[1][0] = of(tensor.BF16, 3), of(tensor.F16, 3) },
	})
	a := good()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	testOperands(t, ops.MultiTensorAdam, a, access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessUpdate, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "tensor_lists[4][0]": opregistry.AccessUpdate,
	})
}

func TestMultiTensorScale(t *testing.T) {
	type args = ops.MultiTensorScaleArgs
	good := func() args {
		return args{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list(), list()}, Scale: 2}
	}
	testValidation(t, ops.MultiTensorScale, good, []refusal[args]{
		{"one list", func(a *args) { a.TensorLists = a.TensorLists[:1] }, "tensor_lists", "2 lists (in, out)"},
		{"no flag", func(a *args) { a.NoopFlag = nil }, "noop_flag", "a tensor"},
		{"length of a list", func(a *args) { a.TensorLists[1] = nil }, "tensor_lists[1]", "2 tensors, as list 0"},
		{"shape", func(a *args) { a.TensorLists[1][0] = f32(4) }, "tensor_lists[1][0]", "the shape of tensor_lists[0][0], [3]"},
		{"overlap", func(a *args) { a.TensorLists[1][0] = shifted(&a.TensorLists[0][0]) }, "tensor_lists[1][0]", "memory apart from tensor_lists[0][0]"},
	})
	testAccepted(t, ops.MultiTensorScale, good, map[string]func(a *args){
		"in place":     func(a *args) { a.TensorLists[1] = a.TensorLists[0] },
		"other dtype":  func(a *args) { a.TensorLists[1][0] = of(tensor.BF16, 3) },
		"empty lists":  func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 2) },
		"empty tensor": func(a *args) { a.TensorLists[0][0], a.TensorLists[1][0] = f32(0), f32(0) },
	})
	testOperands(t, ops.MultiTensorScale, good(), access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessWrite,
		"tensor_lists[0][1]": opregistry.AccessRead, "tensor_lists[1][1]": opregistry.AccessWrite, "noop_flag": opregistry.AccessUpdate,
	})
}

func TestMultiTensorL2Norm(t *testing.T) {
	type args = ops.MultiTensorL2NormArgs
	good := func() args {
		return args{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list()}, Norm: f32(1), PerTensor: f32(2)}
	}
	testValidation(t, ops.MultiTensorL2Norm, good, []refusal[args]{
		{"no list", func(a *args) { a.TensorLists = nil }, "tensor_lists", "1 list"},
		{"two lists", func(a *args) { a.TensorLists = append(a.TensorLists, list()) }, "tensor_lists", "1 list"},
		{"no flag", func(a *args) { a.NoopFlag = nil }, "noop_flag", "a tensor"},
		{"dtype", func(a *args) { a.TensorLists[0][1] = of(tensor.Bool, 2) }, "tensor_lists[0][1]", "dtype f32, bf16, f16 or f64"},
		{"no norm", func(a *args) { a.Norm = nil }, "norm", "a tensor"},
		{"dtype of norm", func(a *args) { a.Norm = of(tensor.F64, 1) }, "norm", "dtype f32"},
		{"length of norm", func(a *args) { a.Norm = f32(2) }, "norm", "1 elements"},
		{"dtype of per_tensor", func(a *args) { a.PerTensor = of(tensor.F64, 2) }, "per_tensor", "dtype f32"},
		{"length of per_tensor", func(a *args) { a.PerTensor = f32(3) }, "per_tensor", "2 elements (one a tensor)"},
	})
	testAccepted(t, ops.MultiTensorL2Norm, good, map[string]func(a *args){
		"no per_tensor": func(a *args) { a.PerTensor = nil },
		"empty list":    func(a *args) { a.TensorLists, a.PerTensor = make([][]*tensor.Tensor, 1), f32(0) },
	})
	testOperands(t, ops.MultiTensorL2Norm, good(), access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[0][1]": opregistry.AccessRead,
		"norm": opregistry.AccessWrite, "per_tensor": opregistry.AccessWrite, "noop_flag": opregistry.AccessUpdate,
	})
}
