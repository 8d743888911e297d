package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// RMSNormFwdArgs are the arguments of RMSNormFwd.
type RMSNormFwdArgs struct {
	Input             *tensor.Tensor // x [.., cols]
	Weight            *tensor.Tensor // γ [cols]
	Output            *tensor.Tensor // y, shape of x
	RSigma            *tensor.Tensor // f32 [rows]
	Eps               float32
	ZeroCenteredGamma bool
	Saved             *opregistry.Saved
}

// RMSNormFwd normalises each row by its root mean square:
//
//	rsigma[r] = 1 / sqrt(mean_j(x[r,j]²) + eps)
//	y[r,i]    = x[r,i] · rsigma[r] · g[i]       g = γ, or γ+1 with ZeroCenteredGamma
//
// x is read, y and rsigma are written; y may be x. y has any compute dtype; sums and rsigma are f32
// or better. eps > 0. cols = 0 is an error. A NaN in a row makes that row NaN. Source: Zhang and
// Sennrich 2019, arXiv:1910.07467, with eps inside the root.
var RMSNormFwd = opregistry.NewOp("rmsnorm_fwd", opregistry.Schema[RMSNormFwdArgs]{
	Doc:     "root-mean-square normalisation of rows",
	Family:  "rmsnorm",
	Forward: true,
	Saved:   func(a RMSNormFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a RMSNormFwdArgs) error {
		c := check{op: "rmsnorm_fwd"}
		c.rows("input", a.Input, "weight", a.Weight)
		if c.compute("output", a.Output) {
			c.sameShape("output", a.Output, "input", a.Input)
			c.disjointOrSame("output", a.Output, "input", a.Input)
			c.disjoint("output", a.Output, "weight", a.Weight)
		}
		c.perRow("rsigma", a.RSigma, a.Input)
		c.disjoint("rsigma", a.RSigma, "input", a.Input)
		c.disjoint("rsigma", a.RSigma, "output", a.Output)
		c.disjoint("rsigma", a.RSigma, "weight", a.Weight)
		c.positive("eps", a.Eps)
		c.saved(a.Saved)
		return c.err
	},
	Lead: func(a RMSNormFwdArgs) *tensor.Tensor { return a.Input },
	Operands: func(a RMSNormFwdArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).read("weight", a.Weight).write("output", a.Output).write("rsigma", a.RSigma)
	},
})

// RMSNormBwdArgs are the arguments of RMSNormBwd.
type RMSNormBwdArgs struct {
	DZ                *tensor.Tensor // gradient of y [.., cols]
	X                 *tensor.Tensor // shape of dz
	RSigma            *tensor.Tensor // f32 [rows], from RMSNormFwd
	Gamma             *tensor.Tensor // γ [cols]
	DX                *tensor.Tensor // shape of dz
	DGamma            *tensor.Tensor // [cols]
	ZeroCenteredGamma bool
	Saved             *opregistry.Saved
}

// RMSNormBwd is the gradient of RMSNormFwd. With x̂ = x·rsigma and ḡ = dz·g:
//
//	dx[r,i]   = rsigma[r] · (ḡ[r,i] − x̂[r,i] · mean_j(ḡ[r,j]·x̂[r,j]))
//	dgamma[i] = Σ_r dz[r,i] · x̂[r,i]
//
// dz, x, rsigma and gamma are read; dx and dgamma are written; dx may be dz.
// Sums are f32 or better; over the rows of dgamma they run in a fixed order.
// rows = 0 zeroes dgamma. Source: as for RMSNormFwd.
var RMSNormBwd = opregistry.NewOp("rmsnorm_bwd", opregistry.Schema[RMSNormBwdArgs]{
	Doc:    "gradient of rmsnorm_fwd",
	Family: "rmsnorm",
	Saved:  func(a RMSNormBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a RMSNormBwdArgs) error {
		c := check{op: "rmsnorm_bwd"}
		c.rmsnormBwd(a)
		c.saved(a.Saved)
		return c.err
	},
	Lead: func(a RMSNormBwdArgs) *tensor.Tensor { return a.X },
	Operands: func(a RMSNormBwdArgs) []opregistry.Operand {
		return operands{}.read("dz", a.DZ).read("x", a.X).read("rsigma", a.RSigma).read("gamma", a.Gamma).
			write("dx", a.DX).write("dgamma", a.DGamma)
	},
})

// RMSNormBwdAddArgs are the arguments of RMSNormBwdAdd.
type RMSNormBwdAddArgs struct {
	DZ                *tensor.Tensor // gradient of y [.., cols]
	X                 *tensor.Tensor // shape of dz
	Add               *tensor.Tensor // gradient of x from elsewhere, shape of dz
	RSigma            *tensor.Tensor // f32 [rows], from RMSNormFwd
	Gamma             *tensor.Tensor // γ [cols]
	DX                *tensor.Tensor // shape of dz
	DGamma            *tensor.Tensor // [cols]
	ZeroCenteredGamma bool
}

// RMSNormBwdAdd is RMSNormBwd with the gradient of a residual connection:
//
//	dx[r,i] = (dx of rmsnorm_bwd)[r,i] + add[r,i]
//
// added in f32 or better before dx is rounded once. dx may be dz or add. Otherwise it is like
// RMSNormBwd, with one exception: any impl may serve the call, no matter which one ran rmsnorm_fwd.
// rsigma must therefore be what RMSNormFwd defines. Source: TransformerEngine 2.14,
// rmsnorm_bwd_add.
var RMSNormBwdAdd = opregistry.NewOp("rmsnorm_bwd_add", opregistry.Schema[RMSNormBwdAddArgs]{
	Doc: "gradient of rmsnorm_fwd, added to another one",
	Validate: func(a RMSNormBwdAddArgs) error {
		c := check{op: "rmsnorm_bwd_add"}
		c.rmsnormBwd(a.Bwd())
		if c.compute("add", a.Add) {
			c.sameShape("add", a.Add, "x", a.X)
			c.disjointOrSame("dx", a.DX, "add", a.Add)
			c.disjoint("dgamma", a.DGamma, "add", a.Add)
		}
		return c.err
	},
	Lead: func(a RMSNormBwdAddArgs) *tensor.Tensor { return a.X },
	Operands: func(a RMSNormBwdAddArgs) []opregistry.Operand {
		return operands{}.read("dz", a.DZ).read("x", a.X).read("add", a.Add).read("rsigma", a.RSigma).read("gamma", a.Gamma).
			write("dx", a.DX).write("dgamma", a.DGamma)
	},
})

// Bwd returns the arguments of the call without Add.
func (a RMSNormBwdAddArgs) Bwd() RMSNormBwdArgs {
	return RMSNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma,
		ZeroCenteredGamma: a.ZeroCenteredGamma,
	}
}

func (c *check) rmsnormBwd(a RMSNormBwdArgs) {
	c.rows("x", a.X, "gamma", a.Gamma)
	if c.compute("dz", a.DZ) {
		c.sameShape("dz", a.DZ, "x", a.X)
	}
	c.perRow("rsigma", a.RSigma, a.X)
	if c.compute("dx", a.DX) {
		c.sameShape("dx", a.DX, "x", a.X)
		c.disjointOrSame("dx", a.DX, "dz", a.DZ)
		c.disjointFrom("dx", a.DX, named{"x", a.X}, named{"gamma", a.Gamma}, named{"rsigma", a.RSigma})
	}
	if c.compute("dgamma", a.DGamma) {
		c.elements("dgamma", a.DGamma, a.X.Shape().Cols(), "one a column")
		c.disjointFrom("dgamma", a.DGamma, named{"dx", a.DX}, named{"dz", a.DZ}, named{"x", a.X}, named{"gamma", a.Gamma}, named{"rsigma", a.RSigma})
	}
}

// rows checks the input of a normalisation and its weight.
func (c *check) rows(xName string, x *tensor.Tensor, weightName string, weight *tensor.Tensor) {
	if !c.compute(xName, x) || !c.minRank(xName, x, 1) {
		return
	}
	if x.Shape().Cols() == 0 {
		c.fail(xName, "rows of at least one element", "%v", x)
	}
	if c.compute(weightName, weight) {
		c.elements(weightName, weight, x.Shape().Cols(), "one a column")
	}
}

// perRow checks a statistic of the rows of x.
func (c *check) perRow(name string, t, x *tensor.Tensor) {
	if c.dtype(name, t, tensor.F32) {
		c.elements(name, t, x.Shape().Rows(), "one a row")
	}
}
