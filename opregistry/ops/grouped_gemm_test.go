package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

type tensors = []*tensor.Tensor

func TestTEGeneralGroupedGemm(t *testing.T) {
	type args = ops.TEGeneralGroupedGemmArgs
	good := func() args {
		return args{
			A: tensors{f32(5, 3), f32(5, 3)}, TransA: true, B: tensors{f32(2, 3), f32(4, 3)}, D: tensors{f32(2, 5), f32(4, 5)},
			Bias: tensors{f32(5), f32(5)}, PreGeluOut: tensors{f32(2, 5), f32(4, 5)},
		}
	}
	refusals := []refusal[args]{
		{"too few B", func(a *args) { a.B = a.B[:1] }, "B", "2 tensors"},
		{"too many D", func(a *args) { a.D = append(a.D, f32(1, 5)) }, "D", "2 tensors"},
		{"too few bias", func(a *args) { a.Bias = a.Bias[:1] }, "bias", "2 tensors"},
		{"too few pre_gelu_out", func(a *args) { a.PreGeluOut = a.PreGeluOut[:1] }, "pre_gelu_out", "2 tensors"},
		{"no A", func(a *args) { a.A[1] = nil }, "A[1]", "a tensor"},
		{"no B", func(a *args) { a.B[0] = nil }, "B[0]", "a tensor"},
		{"no D", func(a *args) { a.D[1] = nil }, "D[1]", "a tensor"},
		{"no bias", func(a *args) { a.Bias[1] = nil }, "bias[1]", "a tensor"},
		{"no pre_gelu_out", func(a *args) { a.PreGeluOut[0] = nil }, "pre_gelu_out[0]", "a tensor"},
		{"dtype of B", func(a *args) { a.B[1] = of(tensor.F16, 4, 3) }, "B[1]", "the dtype of A, f32"},
		{"inner size", func(a *args) { a.A[1] = f32(5, 4) }, "A[1]", "inner size 3"},
		{"shape of D", func(a *args) { a.D[1] = f32(4, 4) }, "D[1]", "shape [4 5]"},
		{"length of bias", func(a *args) { a.Bias[1] = f32(4) }, "bias[1]", "5 elements"},
		{"shape of pre_gelu_out", func(a *args) { a.PreGeluOut[1] = f32(5, 4) }, "pre_gelu_out[1]", "the shape of D, [4 5]"},
		{"D twice", func(a *args) { a.D[0] = view(a.D[1], 2, 5) }, "D[0]", "memory apart from D[1]"},
		{"D over A of another group", func(a *args) { a.D[0] = view(a.A[1], 2, 5) }, "D[0]", "memory apart from A[1]"},
		{"D over pre_gelu_out of another group", func(a *args) { a.PreGeluOut[0] = view(a.D[1], 2, 5) }, "D[1]", "memory apart from pre_gelu_out[0]"},
		{"pre_gelu_out over bias of another group", func(a *args) { a.Bias[0] = flat(a.PreGeluOut[1], 5) }, "pre_gelu_out[1]", "memory apart from bias[0]"},
	}
	testValidation(t, ops.TEGeneralGroupedGemm, good, refusals)
	single := func() args {
		a := good()
		a.SingleOutput, a.D = true, tensors{f32(6, 5)}
		return a
	}
	testValidation(t, ops.TEGeneralGroupedGemm, single, []refusal[args]{
		{"no D", func(a *args) { a.D = nil }, "D", "1 tensors"},
		{"D without memory", func(a *args) { a.D[0] = nil }, "D[0]", "a tensor"},
		{"axes of D", func(a *args) { a.D[0] = f32(2, 3, 5) }, "D[0]", "2 axes"},
		{"columns of D", func(a *args) { a.D[0] = f32(6, 4) }, "D[0]", "5]"},
		{"rows of D", func(a *args) { a.D[0] = f32(7, 5) }, "D[0]", "6 rows"},
		{"shape of pre_gelu_out", func(a *args) { a.PreGeluOut[1] = f32(5, 4) }, "pre_gelu_out[1]", "shape [4 5]"},
		{"D over B", func(a *args) { a.B[1] = view(a.D[0], 4, 3) }, "D[0]", "memory apart from B"},
	})
	testAccepted(t, ops.TEGeneralGroupedGemm, good, map[string]func(a *args){
		"no groups":    func(a *args) { *a = args{} },
		"no epilogues": func(a *args) { a.Bias, a.PreGeluOut = nil, nil },
		"one weight":   func(a *args) { a.A[1] = a.A[0] },
	})
	testOperands(t, ops.TEGeneralGroupedGemm, good(), access{
		"A[0]": opregistry.AccessRead, "A[1]": opregistry.AccessRead, "B[0]": opregistry.AccessRead, "B[1]": opregistry.AccessRead, "D[0]": opregistry.AccessWrite, "D[1]": opregistry.AccessWrite,
		"bias[0]": opregistry.AccessRead, "bias[1]": opregistry.AccessRead, "pre_gelu_out[0]": opregistry.AccessWrite, "pre_gelu_out[1]": opregistry.AccessWrite,
	})
	testOperands(t, ops.TEGeneralGroupedGemm, args{
		A: tensors{f32(4, 3)}, B: tensors{f32(4, 5)}, TransB: true, D: tensors{f32(5, 3)}, Bias: tensors{f32(5)}, PreGeluOut: tensors{f32(5, 3)},
		Grad: true, Accumulate: true,
	}, access{"A[0]": opregistry.AccessRead, "B[0]": opregistry.AccessRead, "D[0]": opregistry.AccessUpdate, "bias[0]": opregistry.AccessWrite, "pre_gelu_out[0]": opregistry.AccessRead})

	g, err := single().Group(1, 2)
	require.NoError(t, err)
	assert.Equal(t, tensor.Shape{4, 5}, g.D.Shape())
	assert.Equal(t, 10, g.D.Offset())
}

func TestGroupedTensorGemm(t *testing.T) {
	type args = ops.GroupedGemmArgs
	type group = ops.GroupedTensor
	good := func() args {
		return args{
			A: group{Data: f32(10, 3), NumTensors: 2}, TransA: true, B: group{Data: f32(6, 3), FirstDims: i64(2, 4)},
			D: group{Data: f32(6, 5), FirstDims: i32(2, 4)}, Bias: f32(2, 5), Alpha: f32(2), Beta: f32(2),
		}
	}
	testValidation(t, ops.TEGeneralGroupedGemmForGroupedTensor, good, []refusal[args]{
		{"no A", func(a *args) { a.A = group{} }, "A", "a tensor"},
		{"list of A", func(a *args) { a.A = group{List: tensors{f32(5, 3), f32(5, 3)}} }, "A", "a grouped tensor"},
		{"list of D", func(a *args) { a.D = group{List: tensors{f32(2, 5), f32(4, 5)}} }, "D", "a grouped tensor"},
		{"dtype of D", func(a *args) { a.D.Data = of(tensor.I32, 6, 5) }, "D", "dtype f32, bf16, f16 or f64"},
		{"axes of B", func(a *args) { a.B.Data = f32(2, 3, 3) }, "B", "2 axes"},
		{"dtype of B", func(a *args) { a.B.Data = of(tensor.BF16, 6, 3) }, "B", "the dtype of A, f32"},
		{"number of members", func(a *args) { a.A.NumTensors = 3 }, "A", "divides its 10 rows"},
		{"no members", func(a *args) { a.A.NumTensors = 0 }, "A", "divides its 10 rows"},
		{"members twice", func(a *args) { a.B.NumTensors = 2 }, "B", "no number of members beside first_dims"},
		{"dtype of first_dims", func(a *args) { a.B.FirstDims = f32(2) }, "B.first_dims", "dtype i32 or i64"},
		{"negative first_dims", func(a *args) { a.B.FirstDims = i64(-2, 8) }, "B.first_dims", "add up to 6"},
		{"first_dims too small", func(a *args) { a.B.FirstDims = i64(2, 3) }, "B.first_dims", "add up to 6"},
		{"first_dims too large", func(a *args) { a.B.FirstDims = i64(2, 1<<62) }, "B.first_dims", "add up to 6"},
		{"members of A", func(a *args) { a.A = group{Data: f32(15, 3), NumTensors: 3} }, "A", "2 members, as B"},
		{"members of D", func(a *args) { a.D.FirstDims = i32(2, 2, 2) }, "D", "2 members, as B"},
		{"rows of D", func(a *args) { a.D.FirstDims = i32(4, 2) }, "D", "shape [2 5] for member 0"},
		{"inner size", func(a *args) { a.A.Data = f32(10, 4) }, "A", "inner size 3 of op(B) for member 0"},
		{"rows of bias", func(a *args) { a.Bias = f32(3, 5) }, "bias", "a row a member"},
		{"columns of bias", func(a *args) { a.Bias = f32(2, 4) }, "bias", "a row a member"},
		{"length of alpha", func(a *args) { a.Alpha = f32(3) }, "alpha", "2 elements"},
		{"dtype of beta", func(a *args) { a.Beta = of(tensor.F64, 2) }, "beta", "dtype f32"},
		{"D over A", func(a *args) { a.D.Data = view(a.A.Data, 6, 5) }, "D", "memory apart from A"},
		{"D over bias", func(a *args) { a.Bias = view(a.D.Data, 2, 5) }, "D", "memory apart from bias"},
		{"D over beta", func(a *args) { a.Beta = flat(a.D.Data, 2) }, "D", "memory apart from beta"},
	})
	testAccepted(t, ops.TEGeneralGroupedGemmForGroupedTensor, good, map[string]func(a *args){
		"nothing optional": func(a *args) { a.Bias, a.Alpha, a.Beta = nil, nil, nil },
		"no members": func(a *args) {
			*a = args{A: group{Data: f32(0, 3)}, TransA: true, B: group{Data: f32(0, 3)}, D: group{Data: f32(0, 5)}}
		},
	})
	testOperands(t, ops.TEGeneralGroupedGemmForGroupedTensor, good(), access{
		"A": opregistry.AccessRead, "B": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead, "D": opregistry.AccessUpdate, "D.first_dims": opregistry.AccessRead,
		"bias": opregistry.AccessRead, "alpha": opregistry.AccessRead, "beta": opregistry.AccessRead,
	})

	in := func() args {
		a := good()
		a.A, a.Beta = group{List: tensors{f32(5, 3), f32(5, 3)}}, nil
		return a
	}
	testValidation(t, ops.TEGeneralGroupedGemmForDiscreteIn, in, []refusal[args]{
		{"grouped A", func(a *args) { a.A = group{Data: f32(10, 3), NumTensors: 2} }, "A", "a list of tensors"},
		{"no A", func(a *args) { a.A.List[1] = nil }, "A[1]", "a tensor"},
		{"dtypes of A", func(a *args) { a.A.List[1] = of(tensor.F64, 5, 3) }, "A[1]", "one dtype"},
		{"axes of A", func(a *args) { a.A.List[1] = f32(15) }, "A[1]", "2 axes"},
		{"too few A", func(a *args) { a.A.List = a.A.List[:1] }, "A", "2 members, as B"},
		{"shape of A", func(a *args) { a.A.List[1] = f32(4, 3) }, "D", "shape [4 4] for member 1"},
		{"D over A", func(a *args) { a.A.List[1] = view(a.D.Data, 5, 3) }, "D", "memory apart from A[1]"},
	})
	testOperands(t, ops.TEGeneralGroupedGemmForDiscreteIn, in(), access{
		"A[0]": opregistry.AccessRead, "A[1]": opregistry.AccessRead, "B": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead,
		"D": opregistry.AccessWrite, "D.first_dims": opregistry.AccessRead, "bias": opregistry.AccessRead, "alpha": opregistry.AccessRead,
	})

	outward := func() args {
		return args{
			A: group{Data: f32(6, 3), FirstDims: i64(2, 4)}, B: group{Data: f32(6, 5), FirstDims: i64(2, 4)}, TransB: true,
			D: group{List: tensors{f32(5, 3), f32(5, 3)}},
		}
	}
	testValidation(t, ops.TEGeneralGroupedGemmForDiscreteOut, outward, []refusal[args]{
		{"grouped D", func(a *args) { a.D = group{Data: f32(10, 3), NumTensors: 2} }, "D", "a list of tensors"},
		{"bias", func(a *args) { a.Bias = f32(2, 3) }, "bias", "nil with a list of outputs"},
		{"rows of A", func(a *args) { a.A.FirstDims = i64(3, 3) }, "A", "inner size 2 of op(B) for member 0"},
		{"D twice", func(a *args) { a.D.List[1] = a.D.List[0] }, "D[0]", "memory apart from D[1]"},
		{"D over B", func(a *args) { a.D.List[1] = view(a.B.Data, 5, 3) }, "D", "memory apart from B"},
	})
	testOperands(t, ops.TEGeneralGroupedGemmForDiscreteOut, outward(), access{
		"A": opregistry.AccessRead, "A.first_dims": opregistry.AccessRead, "B": opregistry.AccessRead, "B.first_dims": opregistry.AccessRead,
		"D[0]": opregistry.AccessWrite, "D[1]": opregistry.AccessWrite,
	})
}
