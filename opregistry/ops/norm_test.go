package ops_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestRMSNormFwd(t *testing.T) {
	type args = ops.RMSNormFwdArgs
	good := func() args {
		return args{Input: f32(2, 3, 4), Weight: f32(4), Output: f32(2, 3, 4), RSigma: f32(6), Eps: 1e-5, Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.RMSNormFwd, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"dtype of input", func(a *args) { a.Input = of(tensor.I32, 2, 3, 4) }, "input", "dtype f32, bf16, f16 or f64"},
		{"scalar", func(a *args) { a.Input = f32() }, "input", "shape [.. cols>0]"},
		{"empty rows", func(a *args) { a.Input = f32(6, 0) }, "input", "shape [.. cols>0]"},
		{"no weight", func(a *args) { a.Weight = nil }, "weight", "a tensor"},
		{"length of weight", func(a *args) { a.Weight = f32(3) }, "weight", "4 elements (cols)"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"shape of output", func(a *args) { a.Output = f32(6, 4) }, "output", "the shape of input, [2 3 4]"},
		{"output overlaps input", func(a *args) { a.Output = shifted(&a.Input) }, "output", "the same view as input or memory apart from it"},
		{"output over weight", func(a *args) { a.Weight = flat(a.Output, 4) }, "output", "memory apart from weight"},
		{"no rsigma", func(a *args) { a.RSigma = nil }, "rsigma", "a tensor"},
		{"dtype of rsigma", func(a *args) { a.RSigma = of(tensor.F64, 6) }, "rsigma", "dtype f32"},
		{"length of rsigma", func(a *args) { a.RSigma = f32(2) }, "rsigma", "6 elements (rows)"},
		{"rsigma over input", func(a *args) { a.RSigma = flat(a.Input, 6) }, "rsigma", "memory apart from input"},
		{"rsigma over output", func(a *args) { a.RSigma = flat(a.Output, 6) }, "rsigma", "memory apart from output"},
		{"rsigma over weight", func(a *args) {
			memory := f32(6)
			a.RSigma, a.Weight = memory, flat(memory, 4)
		}, "rsigma", "memory apart from weight"},
		{"eps 0", func(a *args) { a.Eps = 0 }, "eps", "a number > 0"},
		{"eps NaN", func(a *args) { a.Eps = float32(math.NaN()) }, "eps", "a number > 0"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.RMSNormFwd, good, map[string]func(a *args){
		"in place":  func(a *args) { a.Output = a.Input },
		"no rows":   func(a *args) { a.Input, a.Output, a.RSigma = f32(0, 4), f32(0, 4), f32(0) },
		"one row":   func(a *args) { a.Input, a.Output, a.RSigma = f32(4), f32(4), f32(1) },
		"converted": func(a *args) { a.Input, a.Weight = of(tensor.BF16, 2, 3, 4), of(tensor.F16, 4) },
	})
	testOperands(t, ops.RMSNormFwd, good(), access{
		"input": opregistry.AccessRead, "weight": opregistry.AccessRead, "output": opregistry.AccessWrite, "rsigma": opregistry.AccessWrite,
	})
}

func TestRMSNormBwd(t *testing.T) {
	type args = ops.RMSNormBwdArgs
	good := func() args {
		return args{DZ: f32(3, 4), X: f32(3, 4), RSigma: f32(3), Gamma: f32(4), DX: f32(3, 4), DGamma: f32(4), Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.RMSNormBwd, good, []refusal[args]{
		{"no x", func(a *args) { a.X = nil }, "x", "a tensor"},
		{"empty rows", func(a *args) { a.X = f32(3, 0) }, "x", "shape [.. cols>0]"},
		{"length of gamma", func(a *args) { a.Gamma = f32(3) }, "gamma", "4 elements"},
		{"no gamma", func(a *args) { a.Gamma = nil }, "gamma", "a tensor"},
		{"no dz", func(a *args) { a.DZ = nil }, "dz", "a tensor"},
		{"shape of dz", func(a *args) { a.DZ = f32(4, 3) }, "dz", "the shape of x, [3 4]"},
		{"no rsigma", func(a *args) { a.RSigma = nil }, "rsigma", "a tensor"},
		{"length of rsigma", func(a *args) { a.RSigma = f32(4) }, "rsigma", "3 elements"},
		{"no dx", func(a *args) { a.DX = nil }, "dx", "a tensor"},
		{"shape of dx", func(a *args) { a.DX = f32(12) }, "dx", "the shape of x, [3 4]"},
		{"dx overlaps dz", func(a *args) { a.DX = shifted(&a.DZ) }, "dx", "the same view as dz or memory apart from it"},
		{"dx is x", func(a *args) { a.DX = a.X }, "dx", "memory apart from x"},
		{"dx over gamma", func(a *args) { a.Gamma = flat(a.DX, 4) }, "dx", "memory apart from gamma"},
		{"dx over rsigma", func(a *args) { a.RSigma = flat(a.DX, 3) }, "dx", "memory apart from rsigma"},
		{"no dgamma", func(a *args) { a.DGamma = nil }, "dgamma", "a tensor"},
		{"length of dgamma", func(a *args) { a.DGamma = f32(3) }, "dgamma", "4 elements"},
		{"dgamma over dx", func(a *args) { a.DGamma = flat(a.DX, 4) }, "dgamma", "memory apart from dx"},
		{"dgamma over dz", func(a *args) { a.DGamma = flat(a.DZ, 4) }, "dgamma", "memory apart from dz"},
		{"dgamma over x", func(a *args) { a.DGamma = flat(a.X, 4) }, "dgamma", "memory apart from x"},
		{"dgamma is gamma", func(a *args) { a.DGamma = a.Gamma }, "dgamma", "memory apart from gamma"},
		{"dgamma over rsigma", func(a *args) {
			memory := f32(4)
			a.DGamma, a.RSigma = memory, flat(memory, 3)
		}, "dgamma", "memory apart from rsigma"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.RMSNormBwd, good, map[string]func(a *args){
		"in place": func(a *args) { a.DX = a.DZ },
		"no rows":  func(a *args) { a.DZ, a.X, a.DX, a.RSigma = f32(0, 4), f32(0, 4), f32(0, 4), f32(0) },
	})
	testOperands(t, ops.RMSNormBwd, good(), access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite,
	})
}

func TestRMSNormBwdAdd(t *testing.T) {
	type args = ops.RMSNormBwdAddArgs
	good := func() args {
		return args{DZ: f32(3, 4), X: f32(3, 4), Add: f32(3, 4), RSigma: f32(3), Gamma: f32(4), DX: f32(3, 4), DGamma: f32(4)}
	}
	testValidation(t, ops.RMSNormBwdAdd, good, []refusal[args]{
		{"no x", func(a *args) { a.X = nil }, "x", "a tensor"},
		{"shape of dz", func(a *args) { a.DZ = f32(4, 3) }, "dz", "the shape of x, [3 4]"},
		{"length of rsigma", func(a *args) { a.RSigma = f32(4) }, "rsigma", "3 elements"},
		{"length of dgamma", func(a *args) { a.DGamma = f32(3) }, "dgamma", "4 elements"},
		{"no add", func(a *args) { a.Add = nil }, "add", "a tensor"},
		{"dtype of add", func(a *args) { a.Add = of(tensor.I64, 3, 4) }, "add", "dtype f32, bf16, f16 or f64"},
		{"shape of add", func(a *args) { a.Add = f32(12) }, "add", "the shape of x, [3 4]"},
		{"dx overlaps add", func(a *args) { a.DX = shifted(&a.Add) }, "dx", "the same view as add or memory apart from it"},
		{"dgamma over add", func(a *args) { a.DGamma = flat(a.Add, 4) }, "dgamma", "memory apart from add"},
	})
	testAccepted(t, ops.RMSNormBwdAdd, good, map[string]func(a *args){
		"into dz":         func(a *args) { a.DX = a.DZ },
		"into add":        func(a *args) { a.DX = a.Add },
		"add is dz":       func(a *args) { a.Add = a.DZ },
		"another storage": func(a *args) { a.Add = of(tensor.BF16, 3, 4) },
	})
	testOperands(t, ops.RMSNormBwdAdd, good(), access{
		"dz": opregistry.AccessRead, "x": opregistry.AccessRead, "add": opregistry.AccessRead, "rsigma": opregistry.AccessRead, "gamma": opregistry.AccessRead,
		"dx": opregistry.AccessWrite, "dgamma": opregistry.AccessWrite,
	})
}
