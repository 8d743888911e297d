package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestLayerNormFwd(t *testing.T) {
	type args = ops.LayerNormFwdArgs
	good := func() args {
		return args{
			Input: f32(2, 3, 4), Weight: f32(4), Bias: f32(4), Output: f32(2, 3, 4), Mu: f32(6), RSigma: f32(6), Eps: 1e-5,
			Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.LayerNormFwd, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"dtype of input", func(a *args) { a.Input = of(tensor.I32, 2, 3, 4) }, "input", "dtype f32, bf16, f16 or f64"},
		{"empty rows", func(a *args) { a.Input = f32(6, 0) }, "input", "shape [.. cols>0]"},
		{"length of weight", func(a *args) { a.Weight = f32(3) }, "weight", "4 elements (cols)"},
		{"dtype of bias", func(a *args) { a.Bias = of(tensor.U8, 4) }, "bias", "dtype f32, bf16, f16 or f64"},
		{"length of bias", func(a *args) { a.Bias = f32(3) }, "bias", "4 elements (cols)"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"shape of output", func(a *args) { a.Output = f32(6, 4) }, "output", "the shape of input, [2 3 4]"},
		{"output overlaps input", func(a *args) { a.Output = shifted(&a.Input) }, "output", "the same view as input or memory apart from it"},
		{"output over weight", func(a *args) { a.Weight = flat(a.Output, 4) }, "output", "memory apart from weight"},
		{"output over bias", func(a *args) { a.Bias = flat(a.Output, 4) }, "output", "memory apart from bias"},
		{"no mu", func(a *args) { a.Mu = nil }, "mu", "a tensor"},
		{"dtype of mu", func(a *args) { a.Mu = of(tensor.BF16, 6) }, "mu", "dtype f32"},
		{"length of mu", func(a *args) { a.Mu = f32(2) }, "mu", "6 elements (rows)"},
		{"mu over input", func(a *args) { a.Mu = flat(a.Input, 6) }, "mu", "memory apart from input"},
		{"mu over output", func(a *args) { a.Mu = flat(a.Output, 6) }, "mu", "memory apart from output"},
		{"no rsigma", func(a *args) { a.RSigma = nil }, "rsigma", "a tensor"},
		{"dtype of rsigma", func(a *args) { a.RSigma = of(tensor.BF16, 6) }, "rsigma", "dtype f32"},
		{"rsigma is mu", func(a *args) { a.RSigma = a.Mu }, "rsigma", "memory apart from mu"},
		{"rsigma over output", func(a *args) { a.RSigma = flat(a.Output, 6) }, "rsigma", "memory apart from output"},
		{"eps 0", func(a *args) { a.Eps = 0 }, "eps", "a number > 0"},
		{"eps NaN", func(a *args) { a.Eps = float32(math.NaN()) }, "eps", "a number > 0"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.LayerNormFwd, good, map[string]func(a *args){
		"no bias":   func(a *args) { a.Bias = nil },
		"in place":  func(a *args) { a.Output = a.Input },
		"no rows":   func(a *args) { a.Input, a.Output, a.Mu, a.RSigma = f32(0, 4), f32(0, 4), f32(0), f32(0) },
		"converted": func(a *args) { a.Input, a.Bias = of(tensor.BF16, 2, 3, 4), of(tensor.F16, 4) },
	})
	testOperands(t, ops.LayerNormFwd, good(), access{
		"input": opregistry.AccessRead, "weight": opregistry.AccessRead, "bias": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "mu": opregistry.AccessWrite, "rsigma": opregistry.AccessWrite,
	})
}

func TestLayerNormBwd(t *testing.T) {
	type args = ops.LayerNormBwdArgs
	good := func() args {
		return args{
			DZ: f32(3, 4), X: f32(3, 4), Mu: f32(3), RSigma: f32(3), Gamma: f32(4), DX: f32(3, 4), DGamma: f32(4), DBeta: f32(4),
			Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.LayerNormBwd, good, []refusal[args]{
		{"no x", func(a *args) { a.X = nil }, "x", "a tensor"},
		{"no gamma", func(a *args) { a.Gamma = nil }, "gamma", "a tensor"},
		{"no dz", func(a *args) { a.DZ = nil }, "dz", "a tensor"},
		{"shape of dz", func(a *args) { a.DZ = f32(4, 3) }, "dz", "the shape of x, [3 4]"},
		{"no mu", func(a *args) { a.Mu = nil }, "mu", "a tensor"},
		{"length of mu", func(a *args) { a.Mu = f32(4) }, "mu", "3 elements (rows)"},
		{"dtype of rsigma", func(a *args) { a.RSigma = of(tensor.F64, 3) }, "rsigma", "dtype f32"},
		{"no dx", func(a *args) { a.DX = nil }, "dx", "a tensor"},
		{"shape of dx", func(a *args) { a.DX = f32(12) }, "dx", "the shape of x, [3 4]"},
		{"dx overlaps dz", func(a *args) { a.DX = shifted(&a.DZ) }, "dx", "the same view as dz or memory apart from it"},
		{"dx is x", func(a *args) { a.DX = a.X }, "dx", "memory apart from x"},
		{"dx over mu", func(a *args) { a.Mu = flat(a.DX, 3) }, "dx", "memory apart from mu"},
		{"no dgamma", func(a *args) { a.DGamma = nil }, "dgamma", "a tensor"},
		{"length of dgamma", func(a *args) { a.DGamma = f32(3) }, "dgamma", "4 elements (cols)"},
		{"dgamma is gamma", func(a *args) { a.DGamma = a.Gamma }, "dgamma", "memory apart from gamma"},
		{"length of dbeta", func(a *args) { a.DBeta = f32(3) }, "dbeta", "4 elements (cols)"},
		{"dtype of dbeta", func(a *args) { a.DBeta = of(tensor.I32, 4) }, "dbeta", "dtype f32, bf16, f16 or f64"},
		{"dbeta is dgamma", func(a *args) { a.DBeta = a.DGamma }, "dbeta", "memory apart from dgamma"},
		{"dbeta over dz", func(a *args) { a.DBeta = flat(a.DZ, 4) }, "dbeta", "memory apart from dz"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.LayerNormBwd, good, map[string]func(a *args){
		"no dbeta": func(a *args) { a.DBeta = nil },
		"in place": func(a *args) { a.DX = a.DZ },
		"no rows":  func(a *args) { a.DZ, a.X, a.DX, a.Mu, a.RSigma = f32(0, 4), f32(0, 4), f32(0, 4), f32(0), f32(0) },
	})
	testOperands(t, ops.LayerNormBwd, good(), access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "mu": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite, "dbeta": opregistry.AccessWrite,
	})
}
