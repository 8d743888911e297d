package optim_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

func TestMultiTensorAdam(t *testing.T) {
	type args = optim.MultiTensorAdamArgs
	good := func() args {
		return args{
			NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.List(), checktest.List(), checktest.List(), checktest.List()},
			LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Step: 1, Mode: optim.AdamDecay,
		}
	}
	checktest.Validation(t, optim.MultiTensorAdam, good, []checktest.Refusal[args]{
		{Name: "three lists", Edit: func(a *args) { a.TensorLists = a.TensorLists[:3] }, Operand: "tensor_lists", Want: "4 to 5 lists (g, p, m, v, master?)"},
		{Name: "six lists", Edit: func(a *args) { a.TensorLists = append(a.TensorLists, checktest.List()) }, Operand: "tensor_lists", Want: "4 to 5 lists (g, p, m, v, master?)"},
		{Name: "no flag", Edit: func(a *args) { a.NoopFlag = nil }, Operand: "noop_flag", Want: "a tensor"},
		{Name: "dtype of flag", Edit: func(a *args) { a.NoopFlag = checktest.F32(1) }, Operand: "noop_flag", Want: "dtype i32"},
		{Name: "length of flag", Edit: func(a *args) { a.NoopFlag = checktest.I32(0, 0) }, Operand: "noop_flag", Want: "1 element (1)"},
		{Name: "length of a list", Edit: func(a *args) { a.TensorLists[2] = checktest.List()[:1] }, Operand: "tensor_lists[2]", Want: "2 tensors, as list 0"},
		{Name: "nil tensor", Edit: func(a *args) { a.TensorLists[0][1] = nil }, Operand: "tensor_lists[0][1]", Want: "a tensor"},
		{Name: "dtype", Edit: func(a *args) { a.TensorLists[1][0] = checktest.Zeros(tensor.I64, 3) }, Operand: "tensor_lists[1][0]", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "shape", Edit: func(a *args) { a.TensorLists[3][1] = checktest.F32(4) }, Operand: "tensor_lists[3][1]", Want: "the shape of tensor_lists[0][1], [2 2]"},
		{Name: "dtype of master", Edit: func(a *args) { a.TensorLists[4][0] = checktest.Zeros(tensor.BF16, 3) }, Operand: "tensor_lists[4][0]", Want: "dtype f32"},
		{Name: "step 0", Edit: func(a *args) { a.Step = 0 }, Operand: "step", Want: "a number >= 1"},
		{Name: "mode", Edit: func(a *args) { a.Mode = 2 }, Operand: "mode", Want: "0 (L2) or 1 (AdamW)"},
		{Name: "beta1 of 1", Edit: func(a *args) { a.Beta1 = 1 }, Operand: "beta1", Want: "a number in [0, 1)"},
		{Name: "negative beta1", Edit: func(a *args) { a.Beta1 = -0.1 }, Operand: "beta1", Want: "a number in [0, 1)"},
		{Name: "beta2 of 1", Edit: func(a *args) { a.Beta2 = 1 }, Operand: "beta2", Want: "a number in [0, 1)"},
		{Name: "beta2 of NaN", Edit: func(a *args) { a.Beta2 = float32(math.NaN()) }, Operand: "beta2", Want: "a number in [0, 1)"},
	})
	checktest.Accepted(t, optim.MultiTensorAdam, good, map[string]func(a *args){
		"four lists":  func(a *args) { a.TensorLists = a.TensorLists[:4] },
		"l2":          func(a *args) { a.Mode = optim.AdamL2 },
		"empty lists": func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 4) },
		"mixed dtypes": func(a *args) {
			a.TensorLists[0][0], a.TensorLists[1][0] = checktest.Zeros(tensor.BF16, 3), checktest.Zeros(tensor.F16, 3)
		},
	})
	a := good()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	checktest.Operands(t, optim.MultiTensorAdam, a, checktest.Access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessUpdate, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "tensor_lists[4][0]": opregistry.AccessUpdate, "noop_flag": opregistry.AccessRead,
	})
}

func TestMultiTensorScale(t *testing.T) {
	type args = optim.MultiTensorScaleArgs
	good := func() args {
		return args{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.List()}, Scale: 2}
	}
	checktest.Validation(t, optim.MultiTensorScale, good, []checktest.Refusal[args]{
		{Name: "one list", Edit: func(a *args) { a.TensorLists = a.TensorLists[:1] }, Operand: "tensor_lists", Want: "2 lists (in, out)"},
		{Name: "no flag", Edit: func(a *args) { a.NoopFlag = nil }, Operand: "noop_flag", Want: "a tensor"},
		{Name: "length of a list", Edit: func(a *args) { a.TensorLists[1] = nil }, Operand: "tensor_lists[1]", Want: "2 tensors, as list 0"},
		{Name: "shape", Edit: func(a *args) { a.TensorLists[1][0] = checktest.F32(4) }, Operand: "tensor_lists[1][0]", Want: "the shape of tensor_lists[0][0], [3]"},
		{Name: "overlap", Edit: func(a *args) { a.TensorLists[1][0] = checktest.Shifted(&a.TensorLists[0][0]) }, Operand: "tensor_lists[1][0]", Want: "the same view as tensor_lists[0][0] or memory apart from it"},
	})
	checktest.Accepted(t, optim.MultiTensorScale, good, map[string]func(a *args){
		"in place":     func(a *args) { a.TensorLists[1] = a.TensorLists[0] },
		"other dtype":  func(a *args) { a.TensorLists[1][0] = checktest.Zeros(tensor.BF16, 3) },
		"empty lists":  func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 2) },
		"empty tensor": func(a *args) { a.TensorLists[0][0], a.TensorLists[1][0] = checktest.F32(0), checktest.F32(0) },
	})
	checktest.Operands(t, optim.MultiTensorScale, good(), checktest.Access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessWrite,
		"tensor_lists[0][1]": opregistry.AccessRead, "tensor_lists[1][1]": opregistry.AccessWrite, "noop_flag": opregistry.AccessUpdate,
	})
}

func TestMultiTensorL2Norm(t *testing.T) {
	type args = optim.MultiTensorL2NormArgs
	good := func() args {
		return args{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List()}, Norm: checktest.F32(1), PerTensor: checktest.F32(2)}
	}
	checktest.Validation(t, optim.MultiTensorL2Norm, good, []checktest.Refusal[args]{
		{Name: "no list", Edit: func(a *args) { a.TensorLists = nil }, Operand: "tensor_lists", Want: "1 list"},
		{Name: "two lists", Edit: func(a *args) { a.TensorLists = append(a.TensorLists, checktest.List()) }, Operand: "tensor_lists", Want: "1 list"},
		{Name: "no flag", Edit: func(a *args) { a.NoopFlag = nil }, Operand: "noop_flag", Want: "a tensor"},
		{Name: "dtype", Edit: func(a *args) { a.TensorLists[0][1] = checktest.Zeros(tensor.Bool, 2) }, Operand: "tensor_lists[0][1]", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "no norm", Edit: func(a *args) { a.Norm = nil }, Operand: "norm", Want: "a tensor"},
		{Name: "dtype of norm", Edit: func(a *args) { a.Norm = checktest.Zeros(tensor.F64, 1) }, Operand: "norm", Want: "dtype f32"},
		{Name: "length of norm", Edit: func(a *args) { a.Norm = checktest.F32(2) }, Operand: "norm", Want: "1 element (1)"},
		{Name: "dtype of per_tensor", Edit: func(a *args) { a.PerTensor = checktest.Zeros(tensor.F64, 2) }, Operand: "per_tensor", Want: "dtype f32"},
		{Name: "length of per_tensor", Edit: func(a *args) { a.PerTensor = checktest.F32(3) }, Operand: "per_tensor", Want: "2 elements (n)"},
	})
	checktest.Accepted(t, optim.MultiTensorL2Norm, good, map[string]func(a *args){
		"no per_tensor": func(a *args) { a.PerTensor = nil },
		"empty list":    func(a *args) { a.TensorLists, a.PerTensor = make([][]*tensor.Tensor, 1), checktest.F32(0) },
	})
	checktest.Operands(t, optim.MultiTensorL2Norm, good(), checktest.Access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[0][1]": opregistry.AccessRead,
		"norm": opregistry.AccessWrite, "per_tensor": opregistry.AccessWrite, "noop_flag": opregistry.AccessUpdate,
	})
}
