package norm_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func TestLayerNormFwd(t *testing.T) {
	type args = norm.LayerNormFwdArgs
	good := func() args {
		return args{
			Input: checktest.F32(2, 3, 4), Weight: checktest.F32(4), Bias: checktest.F32(4), Output: checktest.F32(2, 3, 4), Mu: checktest.F32(6), RSigma: checktest.F32(6), Eps: 1e-5,
			Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, norm.LayerNormFwd, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "dtype of input", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.I32, 2, 3, 4) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "empty rows", Edit: func(a *args) { a.Input = checktest.F32(6, 0) }, Operand: "input", Want: "shape [.. cols>0]"},
		{Name: "length of weight", Edit: func(a *args) { a.Weight = checktest.F32(3) }, Operand: "weight", Want: "4 elements (cols)"},
		{Name: "dtype of bias", Edit: func(a *args) { a.Bias = checktest.Zeros(tensor.U8, 4) }, Operand: "bias", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "length of bias", Edit: func(a *args) { a.Bias = checktest.F32(3) }, Operand: "bias", Want: "4 elements (cols)"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(6, 4) }, Operand: "output", Want: "the shape of input, [2 3 4]"},
		{Name: "output overlaps input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input or memory apart from it"},
		{Name: "output over weight", Edit: func(a *args) { a.Weight = checktest.Flat(a.Output, 4) }, Operand: "output", Want: "memory apart from weight"},
		{Name: "output over bias", Edit: func(a *args) { a.Bias = checktest.Flat(a.Output, 4) }, Operand: "output", Want: "memory apart from bias"},
		{Name: "no mu", Edit: func(a *args) { a.Mu = nil }, Operand: "mu", Want: "a tensor"},
		{Name: "dtype of mu", Edit: func(a *args) { a.Mu = checktest.Zeros(tensor.BF16, 6) }, Operand: "mu", Want: "dtype f32"},
		{Name: "length of mu", Edit: func(a *args) { a.Mu = checktest.F32(2) }, Operand: "mu", Want: "6 elements (rows)"},
		{Name: "mu over input", Edit: func(a *args) { a.Mu = checktest.Flat(a.Input, 6) }, Operand: "mu", Want: "memory apart from input"},
		{Name: "mu over output", Edit: func(a *args) { a.Mu = checktest.Flat(a.Output, 6) }, Operand: "mu", Want: "memory apart from output"},
		{Name: "no rsigma", Edit: func(a *args) { a.RSigma = nil }, Operand: "rsigma", Want: "a tensor"},
		{Name: "dtype of rsigma", Edit: func(a *args) { a.RSigma = checktest.Zeros(tensor.BF16, 6) }, Operand: "rsigma", Want: "dtype f32"},
		{Name: "rsigma is mu", Edit: func(a *args) { a.RSigma = a.Mu }, Operand: "rsigma", Want: "memory apart from mu"},
		{Name: "rsigma over output", Edit: func(a *args) { a.RSigma = checktest.Flat(a.Output, 6) }, Operand: "rsigma", Want: "memory apart from output"},
		{Name: "eps 0", Edit: func(a *args) { a.Eps = 0 }, Operand: "eps", Want: "a number > 0"},
		{Name: "eps NaN", Edit: func(a *args) { a.Eps = float32(math.NaN()) }, Operand: "eps", Want: "a number > 0"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, norm.LayerNormFwd, good, map[string]func(a *args){
		"no bias":  func(a *args) { a.Bias = nil },
		"in place": func(a *args) { a.Output = a.Input },
		"no rows": func(a *args) {
			a.Input, a.Output, a.Mu, a.RSigma = checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0), checktest.F32(0)
		},
		"converted": func(a *args) { a.Input, a.Bias = checktest.Zeros(tensor.BF16, 2, 3, 4), checktest.Zeros(tensor.F16, 4) },
	})
	checktest.Operands(t, norm.LayerNormFwd, good(), checktest.Access{
		"input": opregistry.AccessRead, "weight": opregistry.AccessRead, "bias": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "mu": opregistry.AccessWrite, "rsigma": opregistry.AccessWrite,
	})
}

func TestLayerNormBwd(t *testing.T) {
	type args = norm.LayerNormBwdArgs
	good := func() args {
		return args{
			DZ: checktest.F32(3, 4), X: checktest.F32(3, 4), Mu: checktest.F32(3), RSigma: checktest.F32(3), Gamma: checktest.F32(4), DX: checktest.F32(3, 4), DGamma: checktest.F32(4), DBeta: checktest.F32(4),
			Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, norm.LayerNormBwd, good, []checktest.Refusal[args]{
		{Name: "no x", Edit: func(a *args) { a.X = nil }, Operand: "x", Want: "a tensor"},
		{Name: "no gamma", Edit: func(a *args) { a.Gamma = nil }, Operand: "gamma", Want: "a tensor"},
		{Name: "no dz", Edit: func(a *args) { a.DZ = nil }, Operand: "dz", Want: "a tensor"},
		{Name: "shape of dz", Edit: func(a *args) { a.DZ = checktest.F32(4, 3) }, Operand: "dz", Want: "the shape of x, [3 4]"},
		{Name: "no mu", Edit: func(a *args) { a.Mu = nil }, Operand: "mu", Want: "a tensor"},
		{Name: "length of mu", Edit: func(a *args) { a.Mu = checktest.F32(4) }, Operand: "mu", Want: "3 elements (rows)"},
		{Name: "dtype of rsigma", Edit: func(a *args) { a.RSigma = checktest.Zeros(tensor.F64, 3) }, Operand: "rsigma", Want: "dtype f32"},
		{Name: "no dx", Edit: func(a *args) { a.DX = nil }, Operand: "dx", Want: "a tensor"},
		{Name: "shape of dx", Edit: func(a *args) { a.DX = checktest.F32(12) }, Operand: "dx", Want: "the shape of x, [3 4]"},
		{Name: "dx overlaps dz", Edit: func(a *args) { a.DX = checktest.Shifted(&a.DZ) }, Operand: "dx", Want: "the same view as dz or memory apart from it"},
		{Name: "dx is x", Edit: func(a *args) { a.DX = a.X }, Operand: "dx", Want: "memory apart from x"},
		{Name: "dx over mu", Edit: func(a *args) { a.Mu = checktest.Flat(a.DX, 3) }, Operand: "dx", Want: "memory apart from mu"},
		{Name: "no dgamma", Edit: func(a *args) { a.DGamma = nil }, Operand: "dgamma", Want: "a tensor"},
		{Name: "length of dgamma", Edit: func(a *args) { a.DGamma = checktest.F32(3) }, Operand: "dgamma", Want: "4 elements (cols)"},
		{Name: "dgamma is gamma", Edit: func(a *args) { a.DGamma = a.Gamma }, Operand: "dgamma", Want: "memory apart from gamma"},
		{Name: "length of dbeta", Edit: func(a *args) { a.DBeta = checktest.F32(3) }, Operand: "dbeta", Want: "4 elements (cols)"},
		{Name: "dtype of dbeta", Edit: func(a *args) { a.DBeta = checktest.Zeros(tensor.I32, 4) }, Operand: "dbeta", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "dbeta is dgamma", Edit: func(a *args) { a.DBeta = a.DGamma }, Operand: "dbeta", Want: "memory apart from dgamma"},
		{Name: "dbeta over dz", Edit: func(a *args) { a.DBeta = checktest.Flat(a.DZ, 4) }, Operand: "dbeta", Want: "memory apart from dz"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, norm.LayerNormBwd, good, map[string]func(a *args){
		"no dbeta": func(a *args) { a.DBeta = nil },
		"in place": func(a *args) { a.DX = a.DZ },
		"no rows": func(a *args) {
			a.DZ, a.X, a.DX, a.Mu, a.RSigma = checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0), checktest.F32(0)
		},
	})
	checktest.Operands(t, norm.LayerNormBwd, good(), checktest.Access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "mu": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite, "dbeta": opregistry.AccessWrite,
	})
}
