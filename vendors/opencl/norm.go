package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

//go:embed norm.cl
var normSource string

var normProgram = newProgram("norm", normSource,
	[]string{"X", "Y", "K", "B", "DZ", "A"},
	[]string{"MU"})

const withMu macroFlags = 1

// normImpls returns the impls of the family.
func normImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(norm.RMSNormFwd, rmsNormFwd, Storage),
		openclImpl(norm.RMSNormBwd, rmsNormBwd, Storage),
		openclImpl(norm.RMSNormBwdAdd, rmsNormBwdAdd, Storage),
		openclImpl(norm.LayerNormFwd, normForward, Storage),
		openclImpl(norm.LayerNormBwd, layerNormBwd, Storage),
		openclImpl(norm.ResidualAdd, residualAdd, Storage),
	}
}

func rmsNormFwd(e *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	return normForward(e, norm.LayerNormFwdArgs{
		Input: a.Input, Weight: a.Weight, Output: a.Output, RSigma: a.RSigma, Eps: a.Eps, ZeroCenteredGamma: a.ZeroCenteredGamma,
	})
}

// normForward implements norm.LayerNormFwd, or norm.RMSNormFwd without mu. Sums are f32.
func normForward(e *opregistry.Exec, a norm.LayerNormFwdArgs) error {
	c := begin(e)
	x, y := c.rows("input", a.Input), c.rows("output", a.Output)
	c.vector("weight", a.Weight)
	c.numbers("rsigma", a.RSigma, tensor.F32)
	types, flags := typeList{a.Input.DType(), a.Output.DType(), a.Weight.DType()}, macroFlags(0)
	if a.Mu != nil {
		c.numbers("mu", a.Mu, tensor.F32)
		flags |= withMu
	}
	if a.Bias != nil {
		c.vector("bias", a.Bias)
		types[3] = a.Bias.DType()
	}
	if c.Err != nil || x.Rows == 0 {
		return c.Err
	}
	l := c.kernel(normProgram, "norm_fwd", types, flags).mat(x, y).vec(a.RSigma, a.Weight)
	if a.Mu != nil {
		l.vec(a.Mu)
	}
	l.vec(a.Bias).bool(a.Bias != nil)
	return l.groupRows(x.Rows, x.Cols).f32(a.Eps, centre(a.ZeroCenteredGamma)).Run()
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
	c := begin(e)
	dz, x, dx := c.rows("dz", a.DZ), c.rows("x", a.X), c.rows("dx", a.DX)
	c.numbers("rsigma", a.RSigma, tensor.F32)
	c.vector("gamma", a.Gamma)
	c.vector("dgamma", a.DGamma)
	types, flags := typeList{a.X.DType(), a.DX.DType(), a.Gamma.DType(), tensor.F32, a.DZ.DType()}, macroFlags(0)
	if a.Mu != nil {
		c.numbers("mu", a.Mu, tensor.F32)
		flags |= withMu
	}
	var more rowView
	if add != nil {
		more = c.rows("add", add)
		types[5] = add.DType()
	}
	if a.DBeta != nil {
		c.vector("dbeta", a.DBeta)
	}
	if c.Err != nil {
		return c.Err
	}
	sums, err := c.sums(x.Rows, 2*x.Cols)
	if err != nil {
		return err
	}
	defer sums.Release()
	l := c.kernel(normProgram, "norm_bwd", types, flags).mat(dz, x, dx).vec(a.RSigma, a.Gamma, sums.At(0))
	if a.Mu != nil {
		l.vec(a.Mu)
	}
	l.mat(more).bool(add != nil, a.DBeta != nil)
	if err := l.u32(x.Rows, x.Cols, sums.Per).f32(centre(a.ZeroCenteredGamma)).runGroups(sums.Parts, 1); err != nil {
		return err
	}
	if err := sums.add(a.DGamma, 0); err != nil || a.DBeta == nil {
		return err
	}
	return sums.add(a.DBeta, x.Cols)
}

func residualAdd(e *opregistry.Exec, a norm.ResidualAddArgs) error {
	c := begin(e)
	x, y, out := c.rows("a", a.A), c.rows("b", a.B), c.rows("output", a.Output)
	if c.Err != nil {
		return c.Err
	}
	return c.each(normProgram, "residual_add", typeList{a.A.DType()}, 0, x.Rows, x.Cols, x, y, out).Run()
}
