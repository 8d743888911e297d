package optim_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

func numbers() []*tensor.Tensor { return []*tensor.Tensor{checktest.F32(1), checktest.F32(1)} }

func TestMultiTensorAdamParamRemainder(t *testing.T) {
	type args = optim.MultiTensorAdamArgs
	good := func() args {
		return args{NoopFlag: checktest.I32(0), Step: 1, TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.ListOf(tensor.BF16), checktest.List(), checktest.List(), checktest.ListOf(tensor.I16)}}
	}
	checktest.Validation(t, optim.MultiTensorAdamParamRemainder, good, []checktest.Refusal[args]{
		{Name: "four lists", Edit: func(a *args) { a.TensorLists = a.TensorLists[:4] }, Operand: "tensor_lists", Want: "5 lists (g, p, m, v, remainder)"},
		{Name: "p of f32", Edit: func(a *args) { a.TensorLists[1][1] = checktest.F32(2, 2) }, Operand: "tensor_lists[1][1]", Want: "dtype bf16"},
		{Name: "remainder of i32", Edit: func(a *args) { a.TensorLists[4][0] = checktest.I32(0, 0, 0) }, Operand: "tensor_lists[4][0]", Want: "dtype i16"},
		{Name: "shape of remainder", Edit: func(a *args) { a.TensorLists[4][0] = checktest.Zeros(tensor.I16, 4) }, Operand: "tensor_lists[4][0]", Want: "the shape of tensor_lists[0][0]"},
		{Name: "step 0", Edit: func(a *args) { a.Step = 0 }, Operand: "step", Want: "a number >= 1"},
		{Name: "mode", Edit: func(a *args) { a.Mode = -1 }, Operand: "mode", Want: "0 (L2) or 1 (AdamW)"},
		{Name: "overlap", Edit: func(a *args) { a.TensorLists[3][0] = a.TensorLists[2][0] }, Operand: "tensor_lists[3][0]", Want: "memory apart from tensor_lists[2][0]"},
	})
}

func TestMultiTensorAdamFP8(t *testing.T) {
	type args = optim.MultiTensorAdamArgs
	good := func() args {
		return args{NoopFlag: checktest.I32(0), Step: 1, TensorLists: [][]*tensor.Tensor{
			checktest.List(), checktest.ListOf(tensor.F8E4M3), checktest.List(), checktest.List(), checktest.List(), numbers(), numbers(), numbers(),
		}}
	}
	checktest.Validation(t, optim.MultiTensorAdamFP8, good, []checktest.Refusal[args]{
		{Name: "seven lists", Edit: func(a *args) { a.TensorLists = a.TensorLists[:7] }, Operand: "tensor_lists", Want: "8 lists"},
		{Name: "p of bf16", Edit: func(a *args) { a.TensorLists[1][0] = checktest.Zeros(tensor.BF16, 3) }, Operand: "tensor_lists[1][0]", Want: "dtype f8e4m3 or f8e5m2"},
		{Name: "master of f64", Edit: func(a *args) { a.TensorLists[4][0] = checktest.Zeros(tensor.F64, 3) }, Operand: "tensor_lists[4][0]", Want: "dtype f32"},
		{Name: "two scales", Edit: func(a *args) { a.TensorLists[5][0] = checktest.F32(2) }, Operand: "tensor_lists[5][0]", Want: "1 element (1)"},
		{Name: "amax of bf16", Edit: func(a *args) { a.TensorLists[6][1] = checktest.Zeros(tensor.BF16, 1) }, Operand: "tensor_lists[6][1]", Want: "dtype f32"},
		{Name: "scale_inv is scale", Edit: func(a *args) { a.TensorLists[7][1] = a.TensorLists[5][1] }, Operand: "tensor_lists[7][1]", Want: "memory apart from tensor_lists[5][1]"},
	})
	checktest.Accepted(t, optim.MultiTensorAdamFP8, good, map[string]func(a *args){
		"e5m2":        func(a *args) { a.TensorLists[1][0] = checktest.Zeros(tensor.F8E5M2, 3) },
		"one scale":   func(a *args) { a.TensorLists[5][1] = a.TensorLists[5][0] },
		"empty lists": func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 8) },
	})
	a := good()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	checktest.Operands(t, optim.MultiTensorAdamFP8, a, checktest.Access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessWrite, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "tensor_lists[4][0]": opregistry.AccessUpdate, "tensor_lists[5][0]": opregistry.AccessRead,
		"tensor_lists[6][0]": opregistry.AccessUpdate, "tensor_lists[7][0]": opregistry.AccessWrite, "noop_flag": opregistry.AccessRead,
	})
}

func TestMultiTensorAdamCapturable(t *testing.T) {
	type args = optim.MultiTensorAdamCapturableArgs
	good := func(lists int) func() args {
		return func() args {
			a := args{NoopFlag: checktest.I32(0), LR: checktest.F32(1), Step: checktest.I32(1), InvScale: checktest.F32(1), Beta1: 0.9, Beta2: 0.99}
			for range lists {
				a.TensorLists = append(a.TensorLists, checktest.List())
			}
			return a
		}
	}
	refusals := []checktest.Refusal[args]{
		{Name: "three lists", Edit: func(a *args) { a.TensorLists = a.TensorLists[:3] }, Operand: "tensor_lists", Want: "lists (g, p, m, v"},
		{Name: "six lists", Edit: func(a *args) { a.TensorLists = append(a.TensorLists, checktest.List(), checktest.List()) }, Operand: "tensor_lists", Want: "lists (g, p, m, v"},
		{Name: "no lr", Edit: func(a *args) { a.LR = nil }, Operand: "lr", Want: "a tensor"},
		{Name: "lr of f64", Edit: func(a *args) { a.LR = checktest.Zeros(tensor.F64, 1) }, Operand: "lr", Want: "dtype f32"},
		{Name: "two steps", Edit: func(a *args) { a.Step = checktest.I32(1, 2) }, Operand: "step", Want: "1 element (1)"},
		{Name: "step of f32", Edit: func(a *args) { a.Step = checktest.F32(1) }, Operand: "step", Want: "dtype i32"},
		{Name: "no inv_scale", Edit: func(a *args) { a.InvScale = nil }, Operand: "inv_scale", Want: "a tensor"},
		{Name: "beta", Edit: func(a *args) { a.Beta2 = 1 }, Operand: "beta2", Want: "a number in [0, 1)"},
		{Name: "gradient twice", Edit: func(a *args) { a.TensorLists[0][0] = checktest.F32(3); a.TensorLists[1][0] = a.TensorLists[0][0] }, Operand: "tensor_lists[1][0]", Want: "memory apart from tensor_lists[0][0]"},
		{Name: "lr is a weight", Edit: func(a *args) {
			for l := range a.TensorLists {
				a.TensorLists[l][0] = checktest.F32(1)
			}
			a.LR = a.TensorLists[1][0]
		}, Operand: "tensor_lists[1][0]", Want: "memory apart from lr"},
	}
	t.Run("plain", func(t *testing.T) { checktest.Validation(t, optim.MultiTensorAdamCapturable, good(4), refusals) })
	t.Run("master", func(t *testing.T) {
		checktest.Validation(t, optim.MultiTensorAdamCapturableMaster, good(5), append(refusals,
			checktest.Refusal[args]{Name: "master of bf16", Edit: func(a *args) { a.TensorLists[4][0] = checktest.Zeros(tensor.BF16, 3) }, Operand: "tensor_lists[4][0]", Want: "dtype f32"}))
	})
	a := good(4)()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	checktest.Operands(t, optim.MultiTensorAdamCapturable, a, checktest.Access{
		"tensor_lists[0][0]": opregistry.AccessUpdate, "tensor_lists[1][0]": opregistry.AccessUpdate, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "noop_flag": opregistry.AccessRead, "lr": opregistry.AccessRead, "step": opregistry.AccessRead, "inv_scale": opregistry.AccessRead,
	})
}

func TestMultiTensorSGD(t *testing.T) {
	type args = optim.MultiTensorSGDArgs
	good := func() args {
		return args{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.List(), checktest.List(), checktest.ListOf(tensor.F16)}}
	}
	checktest.Validation(t, optim.MultiTensorSGD, good, []checktest.Refusal[args]{
		{Name: "two lists", Edit: func(a *args) { a.TensorLists = a.TensorLists[:2] }, Operand: "tensor_lists", Want: "3 to 4 lists (g, p, momentum, copy?)"},
		{Name: "five lists", Edit: func(a *args) { a.TensorLists = append(a.TensorLists, checktest.List()) }, Operand: "tensor_lists", Want: "3 to 4 lists"},
		{Name: "copy of i32", Edit: func(a *args) { a.TensorLists[3][0] = checktest.I32(1, 2, 3) }, Operand: "tensor_lists[3][0]", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "copy is p", Edit: func(a *args) { a.TensorLists[3][0] = a.TensorLists[1][0] }, Operand: "tensor_lists[3][0]", Want: "memory apart from tensor_lists[1][0]"},
		{Name: "p is g", Edit: func(a *args) { a.TensorLists[1][0] = a.TensorLists[0][0] }, Operand: "tensor_lists[1][0]", Want: "memory apart from tensor_lists[0][0]"},
	})
	checktest.Accepted(t, optim.MultiTensorSGD, good, map[string]func(a *args){
		"three lists": func(a *args) { a.TensorLists = a.TensorLists[:3] },
		"no tensors":  func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 3) },
	})
}

func TestMultiTensorWithNumbersInTensors(t *testing.T) {
	type scale = optim.MultiTensorScaleTensorArgs
	checktest.Validation(t, optim.MultiTensorScaleTensor, func() scale {
		return scale{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.List()}, Scale: checktest.F32(1)}
	}, []checktest.Refusal[scale]{
		{Name: "scale/one list", Edit: func(a *scale) { a.TensorLists = a.TensorLists[:1] }, Operand: "tensor_lists", Want: "2 lists (in, out)"},
		{Name: "scale/two numbers", Edit: func(a *scale) { a.Scale = checktest.F32(2) }, Operand: "scale", Want: "1 element (1)"},
		{Name: "scale/none", Edit: func(a *scale) { a.Scale = nil }, Operand: "scale", Want: "a tensor"},
		{Name: "scale/out is scale", Edit: func(a *scale) { a.TensorLists = [][]*tensor.Tensor{{checktest.F32(1)}, {a.Scale}} }, Operand: "tensor_lists[1][0]", Want: "memory apart from scale"},
		{Name: "scale/shape", Edit: func(a *scale) { a.TensorLists[1][1] = checktest.F32(4) }, Operand: "tensor_lists[1][1]", Want: "the shape of tensor_lists[0][1]"},
	})
	type norm = optim.MultiTensorUnscaleL2NormArgs
	checktest.Validation(t, optim.MultiTensorUnscaleL2Norm, func() norm {
		return norm{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List()}, InvScale: checktest.F32(1), Norm: checktest.F32(1), PerTensor: checktest.F32(2)}
	}, []checktest.Refusal[norm]{
		{Name: "norm/two lists", Edit: func(a *norm) { a.TensorLists = append(a.TensorLists, checktest.List()) }, Operand: "tensor_lists", Want: "1 list"},
		{Name: "norm/inv_scale of f64", Edit: func(a *norm) { a.InvScale = checktest.Zeros(tensor.F64, 1) }, Operand: "inv_scale", Want: "dtype f32"},
		{Name: "norm/is inv_scale", Edit: func(a *norm) { a.Norm = a.InvScale }, Operand: "norm", Want: "memory apart from inv_scale"},
		{Name: "norm/is an element", Edit: func(a *norm) { a.TensorLists[0][0] = checktest.F32(1); a.Norm = a.TensorLists[0][0] }, Operand: "norm", Want: "memory apart from tensor_lists[0][0]"},
		{Name: "norm/length of per_tensor", Edit: func(a *norm) { a.PerTensor = checktest.F32(3) }, Operand: "per_tensor", Want: "2 elements"},
	})
}
