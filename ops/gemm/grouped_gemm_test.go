package gemm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

type tensors = []*tensor.Tensor

func TestTEGeneralGroupedGemm(t *testing.T) {
	type args = gemm.TEGeneralGroupedGemmArgs
	good := func() args {
		return args{
			A: tensors{checktest.F32(5, 3), checktest.F32(5, 3)}, TransA: true, B: tensors{checktest.F32(2, 3), checktest.F32(4, 3)}, D: tensors{checktest.F32(2, 5), checktest.F32(4, 5)},
			Bias: tensors{checktest.F32(5), checktest.F32(5)}, PreGeluOut: tensors{checktest.F32(2, 5), checktest.F32(4, 5)},
		}
	}
	refusals := []checktest.Refusal[args]{
		{Name: "too few B", Edit: func(a *args) { a.B = a.B[:1] }, Operand: "B", Want: "2 tensors"},
		{Name: "too many D", Edit: func(a *args) { a.D = append(a.D, checktest.F32(1, 5)) }, Operand: "D", Want: "2 tensors"},
		{Name: "too few bias", Edit: func(a *args) { a.Bias = a.Bias[:1] }, Operand: "bias", Want: "2 tensors"},
		{Name: "too few pre_gelu_out", Edit: func(a *args) { a.PreGeluOut = a.PreGeluOut[:1] }, Operand: "pre_gelu_out", Want: "2 tensors"},
		{Name: "no A", Edit: func(a *args) { a.A[1] = nil }, Operand: "A[1]", Want: "a tensor"},
		{Name: "no B", Edit: func(a *args) { a.B[0] = nil }, Operand: "B[0]", Want: "a tensor"},
		{Name: "no D", Edit: func(a *args) { a.D[1] = nil }, Operand: "D[1]", Want: "a tensor"},
		{Name: "no bias", Edit: func(a *args) { a.Bias[1] = nil }, Operand: "bias[1]", Want: "a tensor"},
		{Name: "no pre_gelu_out", Edit: func(a *args) { a.PreGeluOut[0] = nil }, Operand: "pre_gelu_out[0]", Want: "a tensor"},
		{Name: "dtype of B", Edit: func(a *args) { a.B[1] = checktest.Zeros(tensor.F16, 4, 3) }, Operand: "B[1]", Want: "the dtype of A, f32"},
		{Name: "inner size", Edit: func(a *args) { a.A[1] = checktest.F32(5, 4) }, Operand: "A[1]", Want: "inner size 3"},
		{Name: "shape of D", Edit: func(a *args) { a.D[1] = checktest.F32(4, 4) }, Operand: "D[1]", Want: "shape [4 5]"},
		{Name: "length of bias", Edit: func(a *args) { a.Bias[1] = checktest.F32(4) }, Operand: "bias[1]", Want: "5 elements"},
		{Name: "shape of pre_gelu_out", Edit: func(a *args) { a.PreGeluOut[1] = checktest.F32(5, 4) }, Operand: "pre_gelu_out[1]", Want: "the shape of D, [4 5]"},
		{Name: "D twice", Edit: func(a *args) { a.D[0] = checktest.View(a.D[1], 2, 5) }, Operand: "D[1]", Want: "memory apart from D[0]"},
		{Name: "D over A of another group", Edit: func(a *args) { a.D[0] = checktest.View(a.A[1], 2, 5) }, Operand: "D[0]", Want: "memory apart from A[1]"},
		{Name: "D over pre_gelu_out of another group", Edit: func(a *args) { a.PreGeluOut[0] = checktest.View(a.D[1], 2, 5) }, Operand: "pre_gelu_out[0]", Want: "memory apart from D[1]"},
		{Name: "pre_gelu_out over bias of another group", Edit: func(a *args) { a.Bias[0] = checktest.Flat(a.PreGeluOut[1], 5) }, Operand: "pre_gelu_out[1]", Want: "memory apart from bias[0]"},
	}
	checktest.Validation(t, gemm.TEGeneralGroupedGemm, good, refusals)
	single := func() args {
		a := good()
		a.SingleOutput, a.D = true, tensors{checktest.F32(6, 5)}
		return a
	}
	checktest.Validation(t, gemm.TEGeneralGroupedGemm, single, []checktest.Refusal[args]{
		{Name: "no D", Edit: func(a *args) { a.D = nil }, Operand: "D", Want: "1 tensors"},
		{Name: "D without memory", Edit: func(a *args) { a.D[0] = nil }, Operand: "D[0]", Want: "a tensor"},
		{Name: "axes of D", Edit: func(a *args) { a.D[0] = checktest.F32(2, 3, 5) }, Operand: "D[0]", Want: "2 axes"},
		{Name: "columns of D", Edit: func(a *args) { a.D[0] = checktest.F32(6, 4) }, Operand: "D[0]", Want: "5]"},
		{Name: "rows of D", Edit: func(a *args) { a.D[0] = checktest.F32(7, 5) }, Operand: "D[0]", Want: "6 rows"},
		{Name: "shape of pre_gelu_out", Edit: func(a *args) { a.PreGeluOut[1] = checktest.F32(5, 4) }, Operand: "pre_gelu_out[1]", Want: "shape [4 5]"},
		{Name: "D over B", Edit: func(a *args) { a.B[1] = checktest.View(a.D[0], 4, 3) }, Operand: "D[0]", Want: "memory apart from B"},
	})
	checktest.Accepted(t, gemm.TEGeneralGroupedGemm, good, map[string]func(a *args){
		"no groups":    func(a *args) { *a = args{} },
		"no epilogues": func(a *args) { a.Bias, a.PreGeluOut = nil, nil },
		"one weight":   func(a *args) { a.A[1] = a.A[0] },
	})
	checktest.Operands(t, gemm.TEGeneralGroupedGemm, good(), checktest.Access{
		"A[0]": opregistry.AccessRead, "A[1]": opregistry.AccessRead, "B[0]": opregistry.AccessRead, "B[1]": opregistry.AccessRead, "D[0]": opregistry.AccessWrite, "D[1]": opregistry.AccessWrite,
		"bias[0]": opregistry.AccessRead, "bias[1]": opregistry.AccessRead, "pre_gelu_out[0]": opregistry.AccessWrite, "pre_gelu_out[1]": opregistry.AccessWrite,
	})
	checktest.Operands(t, gemm.TEGeneralGroupedGemm, args{
		A: tensors{checktest.F32(4, 3)}, B: tensors{checktest.F32(4, 5)}, TransB: true, D: tensors{checktest.F32(5, 3)}, Bias: tensors{checktest.F32(5)}, PreGeluOut: tensors{checktest.F32(5, 3)},
		Grad: true, Accumulate: true,
	}, checktest.Access{"A[0]": opregistry.AccessRead, "B[0]": opregistry.AccessRead, "D[0]": opregistry.AccessUpdate, "bias[0]": opregistry.AccessWrite, "pre_gelu_out[0]": opregistry.AccessRead})

	g, err := single().Group(1, 2)
	require.NoError(t, err)
	assert.Equal(t, tensor.Shape{4, 5}, g.D.Shape())
	assert.Equal(t, 10, g.D.Offset())
}

func TestGroupedTensorGemm(t *testing.T) {
	type args = gemm.GroupedGemmArgs
	type group = gemm.GroupedTensor
	good := func() args {
		return args{
			A: group{Data: checktest.F32(10, 3), NumTensors: 2}, TransA: true, B: group{Data: checktest.F32(6, 3), FirstDims: checktest.I64(2, 4)},
			D: group{Data: checktest.F32(6, 5), FirstDims: checktest.I32(2, 4)}, Bias: checktest.F32(2, 5), Alpha: checktest.F32(2), Beta: checktest.F32(2),
		}
	}
	checktest.Validation(t, gemm.TEGeneralGroupedGemmForGroupedTensor, good, []checktest.Refusal[args]{
		{Name: "no A", Edit: func(a *args) { a.A = group{} }, Operand: "A.data", Want: "a tensor"},
		{Name: "list of A", Edit: func(a *args) { a.A = group{List: tensors{checktest.F32(5, 3), checktest.F32(5, 3)}} }, Operand: "A", Want: "a grouped tensor"},
		{Name: "list of D", Edit: func(a *args) { a.D = group{List: tensors{checktest.F32(2, 5), checktest.F32(4, 5)}} }, Operand: "D", Want: "a grouped tensor"},
		{Name: "dtype of D", Edit: func(a *args) { a.D.Data = checktest.Zeros(tensor.I32, 6, 5) }, Operand: "D.data", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "axes of B", Edit: func(a *args) { a.B.Data = checktest.F32(2, 3, 3) }, Operand: "B.data", Want: "2 axes"},
		{Name: "dtype of B", Edit: func(a *args) { a.B.Data = checktest.Zeros(tensor.BF16, 6, 3) }, Operand: "B.data", Want: "the dtype of A, f32"},
		{Name: "number of members", Edit: func(a *args) { a.A.NumTensors = 3 }, Operand: "A", Want: "divides its 10 rows"},
		{Name: "no members", Edit: func(a *args) { a.A.NumTensors = 0 }, Operand: "A", Want: "divides its 10 rows"},
		{Name: "members twice", Edit: func(a *args) { a.B.NumTensors = 2 }, Operand: "B", Want: "no number of members beside first_dims"},
		{Name: "dtype of first_dims", Edit: func(a *args) { a.B.FirstDims = checktest.F32(2) }, Operand: "B.first_dims", Want: "dtype i32 or i64"},
		{Name: "negative first_dims", Edit: func(a *args) { a.B.FirstDims = checktest.I64(-2, 8) }, Operand: "B.first_dims", Want: "add up to 6"},
		{Name: "first_dims too small", Edit: func(a *args) { a.B.FirstDims = checktest.I64(2, 3) }, Operand: "B.first_dims", Want: "add up to 6"},
		{Name: "first_dims too large", Edit: func(a *args) { a.B.FirstDims = checktest.I64(2, 1<<62) }, Operand: "B.first_dims", Want: "add up to 6"},
		{Name: "members of A", Edit: func(a *args) { a.A = group{Data: checktest.F32(15, 3), NumTensors: 3} }, Operand: "A", Want: "2 members, as B"},
		{Name: "members of D", Edit: func(a *args) { a.D.FirstDims = checktest.I32(2, 2, 2) }, Operand: "D", Want: "2 members, as B"},
		{Name: "rows of D", Edit: func(a *args) { a.D.FirstDims = checktest.I32(4, 2) }, Operand: "D", Want: "shape [2 5] for member 0"},
		{Name: "inner size", Edit: func(a *args) { a.A.Data = checktest.F32(10, 4) }, Operand: "A", Want: "inner size 3 of op(B) for member 0"},
		{Name: "rows of bias", Edit: func(a *args) { a.Bias = checktest.F32(3, 5) }, Operand: "bias", Want: "a row per member"},
		{Name: "columns of bias", Edit: func(a *args) { a.Bias = checktest.F32(2, 4) }, Operand: "bias", Want: "a row per member"},
		{Name: "length of alpha", Edit: func(a *args) { a.Alpha = checktest.F32(3) }, Operand: "alpha", Want: "2 elements"},
		{Name: "dtype of beta", Edit: func(a *args) { a.Beta = checktest.Zeros(tensor.F64, 2) }, Operand: "beta", Want: "dtype f32"},
		{Name: "D over A", Edit: func(a *args) { a.D.Data = checktest.View(a.A.Data, 6, 5) }, Operand: "D.data", Want: "memory apart from A"},
		{Name: "D over bias", Edit: func(a *args) { a.Bias = checktest.View(a.D.Data, 2, 5) }, Operand: "D.data", Want: "memory apart from bias"},
		{Name: "D over beta", Edit: func(a *args) { a.Beta = checktest.Flat(a.D.Data, 2) }, Operand: "D.data", Want: "memory apart from beta"},
	})
	checktest.Accepted(t, gemm.TEGeneralGroupedGemmForGroupedTensor, good, map[string]func(a *args){
		"nothing optional": func(a *args) { a.Bias, a.Alpha, a.Beta = nil, nil, nil },
		"no members": func(a *args) {
			*a = args{A: group{Data: checktest.F32(0, 3)}, TransA: true, B: group{Data: checktest.F32(0, 3)}, D: group{Data: checktest.F32(0, 5)}}
		},
	})
	checktest.Operands(t, gemm.TEGeneralGroupedGemmForGroupedTensor, good(), checktest.Access{
		"A.data": opregistry.AccessRead, "B.data": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead, "D.data": opregistry.AccessUpdate, "D.first_dims": opregistry.AccessRead,
		"bias": opregistry.AccessRead, "alpha": opregistry.AccessRead, "beta": opregistry.AccessRead,
	})

	in := func() args {
		a := good()
		a.A, a.Beta = group{List: tensors{checktest.F32(5, 3), checktest.F32(5, 3)}}, nil
		return a
	}
	checktest.Validation(t, gemm.TEGeneralGroupedGemmForDiscreteIn, in, []checktest.Refusal[args]{
		{Name: "grouped A", Edit: func(a *args) { a.A = group{Data: checktest.F32(10, 3), NumTensors: 2} }, Operand: "A", Want: "a list of tensors"},
		{Name: "no A", Edit: func(a *args) { a.A.List[1] = nil }, Operand: "A.list[1]", Want: "a tensor"},
		{Name: "dtypes of A", Edit: func(a *args) { a.A.List[1] = checktest.Zeros(tensor.F64, 5, 3) }, Operand: "A.list[1]", Want: "one dtype"},
		{Name: "axes of A", Edit: func(a *args) { a.A.List[1] = checktest.F32(15) }, Operand: "A.list[1]", Want: "2 axes"},
		{Name: "too few A", Edit: func(a *args) { a.A.List = a.A.List[:1] }, Operand: "A", Want: "2 members, as B"},
		{Name: "shape of A", Edit: func(a *args) { a.A.List[1] = checktest.F32(4, 3) }, Operand: "D", Want: "shape [4 4] for member 1"},
		{Name: "D over A", Edit: func(a *args) { a.A.List[1] = checktest.View(a.D.Data, 5, 3) }, Operand: "D.data", Want: "memory apart from A.list[1]"},
	})
	checktest.Operands(t, gemm.TEGeneralGroupedGemmForDiscreteIn, in(), checktest.Access{
		"A.list[0]": opregistry.AccessRead, "A.list[1]": opregistry.AccessRead, "B.data": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead,
		"D.data": opregistry.AccessWrite, "D.first_dims": opregistry.AccessRead, "bias": opregistry.AccessRead, "alpha": opregistry.AccessRead,
	})

	outward := func() args {
		return args{
			A: group{Data: checktest.F32(6, 3), FirstDims: checktest.I64(2, 4)}, B: group{Data: checktest.F32(6, 5), FirstDims: checktest.I64(2, 4)}, TransB: true,
			D: group{List: tensors{checktest.F32(5, 3), checktest.F32(5, 3)}},
		}
	}
	checktest.Validation(t, gemm.TEGeneralGroupedGemmForDiscreteOut, outward, []checktest.Refusal[args]{
		{Name: "grouped D", Edit: func(a *args) { a.D = group{Data: checktest.F32(10, 3), NumTensors: 2} }, Operand: "D", Want: "a list of tensors"},
		{Name: "bias", Edit: func(a *args) { a.Bias = checktest.F32(2, 3) }, Operand: "bias", Want: "nil with a list of outputs"},
		{Name: "rows of A", Edit: func(a *args) { a.A.FirstDims = checktest.I64(3, 3) }, Operand: "A", Want: "inner size 2 of op(B) for member 0"},
		{Name: "D twice", Edit: func(a *args) { a.D.List[1] = a.D.List[0] }, Operand: "D.list[1]", Want: "memory apart from D.list[0]"},
		{Name: "D over B", Edit: func(a *args) { a.D.List[1] = checktest.View(a.B.Data, 5, 3) }, Operand: "D.list[1]", Want: "memory apart from B.data"},
	})
	checktest.Operands(t, gemm.TEGeneralGroupedGemmForDiscreteOut, outward(), checktest.Access{
		"A.data": opregistry.AccessRead, "A.first_dims": opregistry.AccessRead, "B.data": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead,
		"D.list[0]": opregistry.AccessWrite, "D.list[1]": opregistry.AccessWrite,
	})
}
