package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

//go:embed norm.cl
var normSource string

var normProgram = NewProgram("norm", normSource,
	[]string{"X", "Y", "K", "B", "DZ", "A"},
	[]string{"MU"})

const withMu Flags = 1

// normImpls returns the impls of the family.
func normImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(norm.RMSNormFwd, rmsNormFwd, Storage),
		Impl(norm.RMSNormBwd, rmsNormBwd, Storage),
		Impl(norm.RMSNormBwdAdd, rmsNormBwdAdd, Storage),
		Impl(norm.LayerNormFwd, normForward, Storage),
		Impl(norm.LayerNormBwd, layerNormBwd, Storage),
		Impl(norm.ResidualAdd, residualAdd, Storage),
	}
}

func rmsNormFwd(e *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	return normForward(e, norm.LayerNormFwdArgs{
		Input: a.Input, Weight: a.Weight, Output: a.Output, RSigma: a.RSigma, Eps: a.Eps, ZeroCenteredGamma: a.ZeroCenteredGamma,
	})
}

// normForward implements norm.LayerNormFwd, or norm.RMSNormFwd without mu. Sums are f32.
func normForward(e *opregistry.Exec, a norm.LayerNormFwdArgs) error {
	c := Begin(e)
	x, y := c.Rows("input", a.Input), c.Rows("output", a.Output)
	c.Vector("weight", a.Weight)
	c.Numbers("rsigma", a.RSigma, tensor.F32)
	types, flags := Types{a.Input.DType(), a.Output.DType(), a.Weight.DType()}, Flags(0)
	if a.Mu != nil {
		c.Numbers("mu", a.Mu, tensor.F32)
		flags |= withMu
	}
	if a.Bias != nil {
		c.Vector("bias", a.Bias)
		types[3] = a.Bias.DType()
	}
	if c.Err != nil || x.Rows == 0 {
		return c.Err
	}
	l := c.Kernel(normProgram, "norm_fwd", types, flags).Mat(x, y).Vec(a.RSigma, a.Weight)
	if a.Mu != nil {
		l.Vec(a.Mu)
	}
	l.Vec(a.Bias).Bool(a.Bias != nil)
	return l.Rows(x.Rows, x.Cols).F32(a.Eps, centre(a.ZeroCenteredGamma)).Run()
}

// centre is what is added to γ.
func centre(zeroCentered bool) float32 {
	if zeroCentered {
		return 1
	}
	return 0
}

func rmsNormBwd(e *opregistry.Exec, a norm.RMSNormBwdArgs) error {
	return normBackward(e, norm.LayerNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma, ZeroCenteredGamma: a.ZeroCenteredGamma,
	}, nil)
}

func rmsNormBwdAdd(e *opregistry.Exec, a norm.RMSNormBwdAddArgs) error {
	return normBackward(e, norm.LayerNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma, ZeroCenteredGamma: a.ZeroCenteredGamma,
	}, a.Add)
}

func layerNormBwd(e *opregistry.Exec, a norm.LayerNormBwdArgs) error { return normBackward(e, a, nil) }

// normBackward computes the gradient of a norm, which without mu is that of norm.RMSNormFwd, plus
// add unless that is nil. dgamma and dbeta are summed over the rows of each group and then over
// the groups, in order.
func normBackward(e *opregistry.Exec, a norm.LayerNormBwdArgs, add *tensor.Tensor) error {
	c := Begin(e)
	dz, x, dx := c.Rows("dz", a.DZ), c.Rows("x", a.X), c.Rows("dx", a.DX)
	c.Numbers("rsigma", a.RSigma, tensor.F32)
	c.Vector("gamma", a.Gamma)
	c.Vector("dgamma", a.DGamma)
	types, flags := Types{a.X.DType(), a.DX.DType(), a.Gamma.DType(), tensor.F32, a.DZ.DType()}, Flags(0)
	if a.Mu != nil {
		c.Numbers("mu", a.Mu, tensor.F32)
		flags |= withMu
	}
	var more Rows
	if add != nil {
		more = c.Rows("add", add)
		types[5] = add.DType()
	}
	if a.DBeta != nil {
		c.Vector("dbeta", a.DBeta)
	}
	if c.Err != nil {
		return c.Err
	}
	sums, err := c.Sums(x.Rows, 2*x.Cols)
	if err != nil {
		return err
	}
	defer sums.Release()
	l := c.Kernel(normProgram, "norm_bwd", types, flags).Mat(dz, x, dx).Vec(a.RSigma, a.Gamma, sums.At(0))
	if a.Mu != nil {
		l.Vec(a.Mu)
	}
	l.Mat(more).Bool(add != nil, a.DBeta != nil)
	if err := l.U32(x.Rows, x.Cols, sums.Per).F32(centre(a.ZeroCenteredGamma)).RunGroups(sums.Parts, 1); err != nil {
		return err
	}
	if err := sums.Add(a.DGamma, 0); err != nil || a.DBeta == nil {
		return err
	}
	return sums.Add(a.DBeta, x.Cols)
}

func residualAdd(e *opregistry.Exec, a norm.ResidualAddArgs) error {
	c := Begin(e)
	x, y, out := c.Rows("a", a.A), c.Rows("b", a.B), c.Rows("output", a.Output)
	if c.Err != nil {
		return c.Err
	}
	return c.Each(normProgram, "residual_add", Types{a.A.DType()}, 0, x.Rows, x.Cols, x, y, out).Run()
}
