package norm_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func TestRMSNormFwd(t *testing.T) {
	type args = norm.RMSNormFwdArgs
	good := func() args {
		return args{Input: checktest.F32(2, 3, 4), Weight: checktest.F32(4), Output: checktest.F32(2, 3, 4), RSigma: checktest.F32(6), Eps: 1e-5, Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, norm.RMSNormFwd, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "dtype of input", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.I32, 2, 3, 4) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "scalar", Edit: func(a *args) { a.Input = checktest.F32() }, Operand: "input", Want: "shape [.. cols>0]"},
		{Name: "empty rows", Edit: func(a *args) { a.Input = checktest.F32(6, 0) }, Operand: "input", Want: "shape [.. cols>0]"},
		{Name: "no weight", Edit: func(a *args) { a.Weight = nil }, Operand: "weight", Want: "a tensor"},
		{Name: "length of weight", Edit: func(a *args) { a.Weight = checktest.F32(3) }, Operand: "weight", Want: "4 elements (cols)"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(6, 4) }, Operand: "output", Want: "the shape of input, [2 3 4]"},
		{Name: "output overlaps input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input or memory apart from it"},
		{Name: "output over weight", Edit: func(a *args) { a.Weight = checktest.Flat(a.Output, 4) }, Operand: "output", Want: "memory apart from weight"},
		{Name: "no rsigma", Edit: func(a *args) { a.RSigma = nil }, Operand: "rsigma", Want: "a tensor"},
		{Name: "dtype of rsigma", Edit: func(a *args) { a.RSigma = checktest.Zeros(tensor.F64, 6) }, Operand: "rsigma", Want: "dtype f32"},
		{Name: "length of rsigma", Edit: func(a *args) { a.RSigma = checktest.F32(2) }, Operand: "rsigma", Want: "6 elements (rows)"},
		{Name: "rsigma over input", Edit: func(a *args) { a.RSigma = checktest.Flat(a.Input, 6) }, Operand: "rsigma", Want: "memory apart from input"},
		{Name: "rsigma over output", Edit: func(a *args) { a.RSigma = checktest.Flat(a.Output, 6) }, Operand: "rsigma", Want: "memory apart from output"},
		{Name: "rsigma over weight", Edit: func(a *args) {
			memory := checktest.F32(6)
			a.RSigma, a.Weight = memory, checktest.Flat(memory, 4)
		}, Operand: "rsigma", Want: "memory apart from weight"},
		{Name: "eps 0", Edit: func(a *args) { a.Eps = 0 }, Operand: "eps", Want: "a number > 0"},
		{Name: "eps NaN", Edit: func(a *args) { a.Eps = float32(math.NaN()) }, Operand: "eps", Want: "a number > 0"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, norm.RMSNormFwd, good, map[string]func(a *args){
		"in place": func(a *args) { a.Output = a.Input },
		"no rows": func(a *args) {
			a.Input, a.Output, a.RSigma = checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0)
		},
		"one row": func(a *args) { a.Input, a.Output, a.RSigma = checktest.F32(4), checktest.F32(4), checktest.F32(1) },
		"converted": func(a *args) {
			a.Input, a.Weight = checktest.Zeros(tensor.BF16, 2, 3, 4), checktest.Zeros(tensor.F16, 4)
		},
	})
	checktest.Operands(t, norm.RMSNormFwd, good(), checktest.Access{
		"input": opregistry.AccessRead, "weight": opregistry.AccessRead, "output": opregistry.AccessWrite, "rsigma": opregistry.AccessWrite,
	})
}

func TestRMSNormBwd(t *testing.T) {
	type args = norm.RMSNormBwdArgs
	good := func() args {
		return args{DZ: checktest.F32(3, 4), X: checktest.F32(3, 4), RSigma: checktest.F32(3), Gamma: checktest.F32(4), DX: checktest.F32(3, 4), DGamma: checktest.F32(4), Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, norm.RMSNormBwd, good, []checktest.Refusal[args]{
		{Name: "no x", Edit: func(a *args) { a.X = nil }, Operand: "x", Want: "a tensor"},
		{Name: "empty rows", Edit: func(a *args) { a.X = checktest.F32(3, 0) }, Operand: "x", Want: "shape [.. cols>0]"},
		{Name: "length of gamma", Edit: func(a *args) { a.Gamma = checktest.F32(3) }, Operand: "gamma", Want: "4 elements"},
		{Name: "no gamma", Edit: func(a *args) { a.Gamma = nil }, Operand: "gamma", Want: "a tensor"},
		{Name: "no dz", Edit: func(a *args) { a.DZ = nil }, Operand: "dz", Want: "a tensor"},
		{Name: "shape of dz", Edit: func(a *args) { a.DZ = checktest.F32(4, 3) }, Operand: "dz", Want: "the shape of x, [3 4]"},
		{Name: "no rsigma", Edit: func(a *args) { a.RSigma = nil }, Operand: "rsigma", Want: "a tensor"},
		{Name: "length of rsigma", Edit: func(a *args) { a.RSigma = checktest.F32(4) }, Operand: "rsigma", Want: "3 elements"},
		{Name: "no dx", Edit: func(a *args) { a.DX = nil }, Operand: "dx", Want: "a tensor"},
		{Name: "shape of dx", Edit: func(a *args) { a.DX = checktest.F32(12) }, Operand: "dx", Want: "the shape of x, [3 4]"},
		{Name: "dx overlaps dz", Edit: func(a *args) { a.DX = checktest.Shifted(&a.DZ) }, Operand: "dx", Want: "the same view as dz or memory apart from it"},
		{Name: "dx is x", Edit: func(a *args) { a.DX = a.X }, Operand: "dx", Want: "memory apart from x"},
		{Name: "dx over gamma", Edit: func(a *args) { a.Gamma = checktest.Flat(a.DX, 4) }, Operand: "dx", Want: "memory apart from gamma"},
		{Name: "dx over rsigma", Edit: func(a *args) { a.RSigma = checktest.Flat(a.DX, 3) }, Operand: "dx", Want: "memory apart from rsigma"},
		{Name: "no dgamma", Edit: func(a *args) { a.DGamma = nil }, Operand: "dgamma", Want: "a tensor"},
		{Name: "length of dgamma", Edit: func(a *args) { a.DGamma = checktest.F32(3) }, Operand: "dgamma", Want: "4 elements"},
		{Name: "dgamma over dx", Edit: func(a *args) { a.DGamma = checktest.Flat(a.DX, 4) }, Operand: "dgamma", Want: "memory apart from dx"},
		{Name: "dgamma over dz", Edit: func(a *args) { a.DGamma = checktest.Flat(a.DZ, 4) }, Operand: "dgamma", Want: "memory apart from dz"},
		{Name: "dgamma over x", Edit: func(a *args) { a.DGamma = checktest.Flat(a.X, 4) }, Operand: "dgamma", Want: "memory apart from x"},
		{Name: "dgamma is gamma", Edit: func(a *args) { a.DGamma = a.Gamma }, Operand: "dgamma", Want: "memory apart from gamma"},
		{Name: "dgamma over rsigma", Edit: func(a *args) {
			memory := checktest.F32(4)
			a.DGamma, a.RSigma = memory, checktest.Flat(memory, 3)
		}, Operand: "dgamma", Want: "memory apart from rsigma"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, norm.RMSNormBwd, good, map[string]func(a *args){
		"in place": func(a *args) { a.DX = a.DZ },
		"no rows": func(a *args) {
			a.DZ, a.X, a.DX, a.RSigma = checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(0)
		},
	})
	checktest.Operands(t, norm.RMSNormBwd, good(), checktest.Access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite,
	})
}

func TestRMSNormBwdAdd(t *testing.T) {
	type args = norm.RMSNormBwdAddArgs
	good := func() args {
		return args{DZ: checktest.F32(3, 4), X: checktest.F32(3, 4), Add: checktest.F32(3, 4), RSigma: checktest.F32(3), Gamma: checktest.F32(4), DX: checktest.F32(3, 4), DGamma: checktest.F32(4)}
	}
	checktest.Validation(t, norm.RMSNormBwdAdd, good, []checktest.Refusal[args]{
		{Name: "no x", Edit: func(a *args) { a.X = nil }, Operand: "x", Want: "a tensor"},
		{Name: "shape of dz", Edit: func(a *args) { a.DZ = checktest.F32(4, 3) }, Operand: "dz", Want: "the shape of x, [3 4]"},
		{Name: "length of rsigma", Edit: func(a *args) { a.RSigma = checktest.F32(4) }, Operand: "rsigma", Want: "3 elements"},
		{Name: "length of dgamma", Edit: func(a *args) { a.DGamma = checktest.F32(3) }, Operand: "dgamma", Want: "4 elements"},
		{Name: "no add", Edit: func(a *args) { a.Add = nil }, Operand: "add", Want: "a tensor"},
		{Name: "dtype of add", Edit: func(a *args) { a.Add = checktest.Zeros(tensor.I64, 3, 4) }, Operand: "add", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "shape of add", Edit: func(a *args) { a.Add = checktest.F32(12) }, Operand: "add", Want: "the shape of x, [3 4]"},
		{Name: "dx overlaps add", Edit: func(a *args) { a.DX = checktest.Shifted(&a.Add) }, Operand: "dx", Want: "the same view as add or memory apart from it"},
		{Name: "dgamma over add", Edit: func(a *args) { a.DGamma = checktest.Flat(a.Add, 4) }, Operand: "dgamma", Want: "memory apart from add"},
	})
	checktest.Accepted(t, norm.RMSNormBwdAdd, good, map[string]func(a *args){
		"into dz":         func(a *args) { a.DX = a.DZ },
		"into add":        func(a *args) { a.DX = a.Add },
		"add is dz":       func(a *args) { a.Add = a.DZ },
		"another storage": func(a *args) { a.Add = checktest.Zeros(tensor.BF16, 3, 4) },
	})
	checktest.Operands(t, norm.RMSNormBwdAdd, good(), checktest.Access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "add": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite,
	})
}
