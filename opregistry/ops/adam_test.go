package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func listOf(d tensor.DType) []*tensor.Tensor { return []*tensor.Tensor{of(d, 3), of(d, 2, 2)} }

func numbers() []*tensor.Tensor { return []*tensor.Tensor{f32(1), f32(1)} }

func TestMultiTensorAdamParamRemainder(t *testing.T) {
	type args = ops.MultiTensorAdamArgs
	good := func() args {
		return args{NoopFlag: i32(0), Step: 1, TensorLists: [][]*tensor.Tensor{list(), listOf(tensor.BF16), list(), list(), listOf(tensor.I16)}}
	}
	testValidation(t, ops.MultiTensorAdamParamRemainder, good, []refusal[args]{
		{"four lists", func(a *args) { a.TensorLists = a.TensorLists[:4] }, "tensor_lists", "5 lists (g, p, m, v, remainder)"},
		{"p of f32", func(a *args) { a.TensorLists[1][1] = f32(2, 2) }, "tensor_lists[1][1]", "dtype bf16"},
		{"remainder of i32", func(a *args) { a.TensorLists[4][0] = i32(0, 0, 0) }, "tensor_lists[4][0]", "dtype i16"},
		{"shape of remainder", func(a *args) { a.TensorLists[4][0] = of(tensor.I16, 4) }, "tensor_lists[4][0]", "the shape of tensor_lists[0][0]"},
		{"step 0", func(a *args) { a.Step = 0 }, "step", "a step >= 1"},
		{"mode", func(a *args) { a.Mode = -1 }, "mode", "0 (L2) or 1 (AdamW)"},
		{"overlap", func(a *args) { a.TensorLists[3][0] = a.TensorLists[2][0] }, "tensor_lists[3][0]", "memory apart from tensor_lists[2][0]"},
	})
}

func TestMultiTensorAdamFP8(t *testing.T) {
	type args = ops.MultiTensorAdamArgs
	good := func() args {
		return args{NoopFlag: i32(0), Step: 1, TensorLists: [][]*tensor.Tensor{
			list(), listOf(tensor.F8E4M3), list(), list(), list(), numbers(), numbers(), numbers(),
		}}
	}
	testValidation(t, ops.MultiTensorAdamFP8, good, []refusal[args]{
		{"seven lists", func(a *args) { a.TensorLists = a.TensorLists[:7] }, "tensor_lists", "8 lists"},
		{"p of bf16", func(a *args) { a.TensorLists[1][0] = of(tensor.BF16, 3) }, "tensor_lists[1][0]", "dtype f8e4m3 or f8e5m2"},
		{"master of f64", func(a *args) { a.TensorLists[4][0] = of(tensor.F64, 3) }, "tensor_lists[4][0]", "dtype f32"},
		{"two scales", func(a *args) { a.TensorLists[5][0] = f32(2) }, "tensor_lists[5][0]", "1 elements (one a tensor)"},
		{"amax of bf16", func(a *args) { a.TensorLists[6][1] = of(tensor.BF16, 1) }, "tensor_lists[6][1]", "dtype f32"},
		{"scale_inv is scale", func(a *args) { a.TensorLists[7][1] = a.TensorLists[5][1] }, "tensor_lists[7][1]", "memory apart from tensor_lists[5][1]"},
	})
	testAccepted(t, ops.MultiTensorAdamFP8, good, map[string]func(a *args){
		"e5m2":        func(a *args) { a.TensorLists[1][0] = of(tensor.F8E5M2, 3) },
		"one scale":   func(a *args) { a.TensorLists[5][1] = a.TensorLists[5][0] },
		"empty lists": func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 8) },
	})
	a := good()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	testOperands(t, ops.MultiTensorAdamFP8, a, access{
		"tensor_lists[0][0]": opregistry.AccessRead, "tensor_lists[1][0]": opregistry.AccessWrite, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "tensor_lists[4][0]": opregistry.AccessUpdate, "tensor_lists[5][0]": opregistry.AccessRead,
		"tensor_lists[6][0]": opregistry.AccessUpdate, "tensor_lists[7][0]": opregistry.AccessWrite,
	})
}

func TestMultiTensorAdamCapturable(t *testing.T) {
	type args = ops.MultiTensorAdamCapturableArgs
	good := func(lists int) func() args {
		return func() args {
			a := args{NoopFlag: i32(0), LR: f32(1), Step: i32(1), InvScale: f32(1), Beta1: 0.9, Beta2: 0.99}
			for range lists {
				a.TensorLists = append(a.TensorLists, list())
			}
			return a
		}
	}
	refusals := []refusal[args]{
		{"three lists", func(a *args) { a.TensorLists = a.TensorLists[:3] }, "tensor_lists", "lists (g, p, m, v"},
		{"six lists", func(a *args) { a.TensorLists = append(a.TensorLists, list(), list()) }, "tensor_lists", "lists (g, p, m, v"},
		{"no lr", func(a *args) { a.LR = nil }, "lr", "a tensor"},
		{"lr of f64", func(a *args) { a.LR = of(tensor.F64, 1) }, "lr", "dtype f32"},
		{"two steps", func(a *args) { a.Step = i32(1, 2) }, "step", "1 elements"},
		{"step of f32", func(a *args) { a.Step = f32(1) }, "step", "dtype i32"},
		{"no inv_scale", func(a *args) { a.InvScale = nil }, "inv_scale", "a tensor"},
		{"beta", func(a *args) { a.Beta2 = 1 }, "beta1, beta2", "numbers in [0, 1)"},
		{"gradient twice", func(a *args) { a.TensorLists[0][0] = f32(3); a.TensorLists[1][0] = a.TensorLists[0][0] }, "tensor_lists[1][0]", "memory apart from tensor_lists[0][0]"},
		{"lr is a weight", func(a *args) {
			for l := range a.TensorLists {
				a.TensorLists[l][0] = f32(1)
			}
			a.LR = a.TensorLists[1][0]
		}, "tensor_lists[1][0]", "memory apart from lr"},
	}
	t.Run("plain", func(t *testing.T) { testValidation(t, ops.MultiTensorAdamCapturable, good(4), refusals) })
	t.Run("master", func(t *testing.T) {
		testValidation(t, ops.MultiTensorAdamCapturableMaster, good(5), append(refusals,
			refusal[args]{"master of bf16", func(a *args) { a.TensorLists[4][0] = of(tensor.BF16, 3) }, "tensor_lists[4][0]", "dtype f32"}))
	})
	a := good(4)()
	for i := range a.TensorLists {
		a.TensorLists[i] = a.TensorLists[i][:1]
	}
	testOperands(t, ops.MultiTensorAdamCapturable, a, access{
		"tensor_lists[0][0]": opregistry.AccessUpdate, "tensor_lists[1][0]": opregistry.AccessUpdate, "tensor_lists[2][0]": opregistry.AccessUpdate,
		"tensor_lists[3][0]": opregistry.AccessUpdate, "noop_flag": opregistry.AccessRead, "lr": opregistry.AccessRead, "step": opregistry.AccessRead, "inv_scale": opregistry.AccessRead,
	})
}

func TestMultiTensorSGD(t *testing.T) {
	type args = ops.MultiTensorSGDArgs
	good := func() args {
		return args{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list(), list(), list(), listOf(tensor.F16)}}
	}
	testValidation(t, ops.MultiTensorSGD, good, []refusal[args]{
		{"two lists", func(a *args) { a.TensorLists = a.TensorLists[:2] }, "tensor_lists", "3 lists (g, p, momentum) or 4 (and a copy of p)"},
		{"five lists", func(a *args) { a.TensorLists = append(a.TensorLists, list()) }, "tensor_lists", "3 lists"},
		{"copy of i32", func(a *args) { a.TensorLists[3][0] = i32(1, 2, 3) }, "tensor_lists[3][0]", "dtype f32, bf16, f16 or f64"},
		{"copy is p", func(a *args) { a.TensorLists[3][0] = a.TensorLists[1][0] }, "tensor_lists[3][0]", "memory apart from tensor_lists[1][0]"},
		{"p is g", func(a *args) { a.TensorLists[1][0] = a.TensorLists[0][0] }, "tensor_lists[1][0]", "memory apart from tensor_lists[0][0]"},
	})
	testAccepted(t, ops.MultiTensorSGD, good, map[string]func(a *args){
		"three lists": func(a *args) { a.TensorLists = a.TensorLists[:3] },
		"no tensors":  func(a *args) { a.TensorLists = make([][]*tensor.Tensor, 3) },
	})
}

func TestMultiTensorWithNumbersInTensors(t *testing.T) {
	type scale = ops.MultiTensorScaleTensorArgs
	testValidation(t, ops.MultiTensorScaleTensor, func() scale {
		return scale{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list(), list()}, Scale: f32(1)}
	}, []refusal[scale]{
		{"scale/one list", func(a *scale) { a.TensorLists = a.TensorLists[:1] }, "tensor_lists", "2 lists (in, out)"},
		{"scale/two numbers", func(a *scale) { a.Scale = f32(2) }, "scale", "1 elements"},
		{"scale/none", func(a *scale) { a.Scale = nil }, "scale", "a tensor"},
		{"scale/out is scale", func(a *scale) { a.TensorLists = [][]*tensor.Tensor{{f32(1)}, {a.Scale}} }, "tensor_lists[1][0]", "memory apart from scale"},
		{"scale/shape", func(a *scale) { a.TensorLists[1][1] = f32(4) }, "tensor_lists[1][1]", "the shape of tensor_lists[0][1]"},
	})
	type norm = ops.MultiTensorUnscaleL2NormArgs
	testValidation(t, ops.MultiTensorUnscaleL2Norm, func() norm {
		return norm{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list()}, InvScale: f32(1), Norm: f32(1), PerTensor: f32(2)}
	}, []refusal[norm]{
		{"norm/two lists", func(a *norm) { a.TensorLists = append(a.TensorLists, list()) }, "tensor_lists", "1 list"},
		{"norm/inv_scale of f64", func(a *norm) { a.InvScale = of(tensor.F64, 1) }, "inv_scale", "dtype f32"},
		{"norm/is inv_scale", func(a *norm) { a.Norm = a.InvScale }, "norm", "memory apart from inv_scale"},
		{"norm/is an element", func(a *norm) { a.TensorLists[0][0] = f32(1); a.Norm = a.TensorLists[0][0] }, "norm", "memory apart from tensor_lists[0][0]"},
		{"norm/length of per_tensor", func(a *norm) { a.PerTensor = f32(3) }, "per_tensor", "2 elements"},
	})
}
