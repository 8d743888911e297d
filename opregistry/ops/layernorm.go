package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// LayerNormFwdArgs are the arguments of LayerNormFwd.
type LayerNormFwdArgs struct {
	Input             *tensor.Tensor // x [.., cols]
	Weight            *tensor.Tensor // γ [cols]
	Bias              *tensor.Tensor // β [cols], nil for 0
	Output            *tensor.Tensor // y, shape of x
	Mu                *tensor.Tensor // f32 [rows]
	RSigma            *tensor.Tensor // f32 [rows]
	Eps               float32
	ZeroCenteredGamma bool
	Saved             *opregistry.Saved
}

// LayerNormFwd shifts and scales each row to mean 0 and variance 1:
//
//	mu[r]     = mean_j(x[r,j])
//	rsigma[r] = 1 / sqrt(mean_j((x[r,j] − mu[r])²) + eps)
//	y[r,i]    = (x[r,i] − mu[r]) · rsigma[r] · g[i] + β[i]     g = γ, or γ+1 with ZeroCenteredGamma
//
// x, γ and β are read; y, mu and rsigma are written; y may be x. Weight, bias and y may each have
// any compute dtype; sums are f32 or better, mu and rsigma f32 for any dtype of x. eps > 0. cols =
// 0 is an error. A NaN or an infinity in a row makes that row NaN. Source: Ba, Kiros and Hinton
// 2016, arXiv:1607.06450, with the biased variance and eps inside the root.
var LayerNormFwd = opregistry.NewOp("layernorm_fwd", opregistry.Schema[LayerNormFwdArgs]{
	Doc:     "normalisation of rows to mean 0 and variance 1",
	Family:  "layernorm",
	Forward: true,
	Saved:   func(a LayerNormFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a LayerNormFwdArgs) error {
		c := check{op: "layernorm_fwd"}
		c.rows("input", a.Input, "weight", a.Weight)
		if a.Bias != nil && c.compute("bias", a.Bias) {
			c.elements("bias", a.Bias, a.Input.Shape().Cols(), "one a column")
		}
		if c.compute("output", a.Output) {
			c.sameShape("output", a.Output, "input", a.Input)
			c.disjointOrSame("output", a.Output, "input", a.Input)
			c.disjointFrom("output", a.Output, named{"weight", a.Weight}, named{"bias", a.Bias})
		}
		c.perRow("mu", a.Mu, a.Input)
		c.disjointFrom("mu", a.Mu, named{"input", a.Input}, named{"output", a.Output}, named{"weight", a.Weight}, named{"bias", a.Bias})
		c.perRow("rsigma", a.RSigma, a.Input)
		c.disjointFrom("rsigma", a.RSigma, named{"input", a.Input}, named{"output", a.Output}, named{"weight", a.Weight}, named{"bias", a.Bias}, named{"mu", a.Mu})
		c.positive("eps", a.Eps)
		c.saved(a.Saved)
		return c.err
	},
	Lead: func(a LayerNormFwdArgs) *tensor.Tensor { return a.Input },
	Operands: func(a LayerNormFwdArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).read("weight", a.Weight).read("bias", a.Bias).
			write("output", a.Output).write("mu", a.Mu).write("rsigma", a.RSigma)
	},
})

// LayerNormBwdArgs are the arguments of LayerNormBwd.
type LayerNormBwdArgs struct {
	DZ                *tensor.Tensor // gradient of y [.., cols]
	X                 *tensor.Tensor // shape of dz
	Mu, RSigma        *tensor.Tensor // f32 [rows], from LayerNormFwd
	Gamma             *tensor.Tensor // γ [cols]
	DX                *tensor.Tensor // shape of dz
	DGamma            *tensor.Tensor // [cols]
	DBeta             *tensor.Tensor // [cols], nil when there is no bias
	ZeroCenteredGamma bool
	Saved             *opregistry.Saved
}

// LayerNormBwd is the gradient of LayerNormFwd. With x̂ = (x − mu)·rsigma and ḡ = dz·g:
//
//	dx[r,i]   = rsigma[r] · (ḡ[r,i] − mean_j(ḡ[r,j]) − x̂[r,i] · mean_j(ḡ[r,j]·x̂[r,j]))
//	dgamma[i] = Σ_r dz[r,i] · x̂[r,i]
//	dbeta[i]  = Σ_r dz[r,i]
//
// dx, dgamma and dbeta are written, the others are read; dx may be dz. Sums are f32 or better; sums
// over the rows run in a fixed order. rows = 0 zeroes dgamma and dbeta. Source: as for
// LayerNormFwd.
var LayerNormBwd = opregistry.NewOp("layernorm_bwd", opregistry.Schema[LayerNormBwdArgs]{
	Doc:    "gradient of layernorm_fwd",
	Family: "layernorm",
	Saved:  func(a LayerNormBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a LayerNormBwdArgs) error {
		c := check{op: "layernorm_bwd"}
		c.rows("x", a.X, "gamma", a.Gamma)
		if c.compute("dz", a.DZ) {
			c.sameShape("dz", a.DZ, "x", a.X)
		}
		c.perRow("mu", a.Mu, a.X)
		c.perRow("rsigma", a.RSigma, a.X)
		if c.compute("dx", a.DX) {
			c.sameShape("dx", a.DX, "x", a.X)
			c.disjointOrSame("dx", a.DX, "dz", a.DZ)
			c.disjointFrom("dx", a.DX, named{"x", a.X}, named{"mu", a.Mu}, named{"rsigma", a.RSigma}, named{"gamma", a.Gamma})
		}
		c.columnSum("dgamma", a.DGamma, a)
		if a.DBeta != nil {
			c.columnSum("dbeta", a.DBeta, a)
			c.disjoint("dbeta", a.DBeta, "dgamma", a.DGamma)
		}
		c.saved(a.Saved)
		return c.err
	},
	Lead: func(a LayerNormBwdArgs) *tensor.Tensor { return a.X },
	Operands: func(a LayerNormBwdArgs) []opregistry.Operand {
		return operands{}.read("dz", a.DZ).read("x", a.X).read("mu", a.Mu).read("rsigma", a.RSigma).read("gamma", a.Gamma).
			write("dx", a.DX).write("dgamma", a.DGamma).write("dbeta", a.DBeta)
	},
})

// columnSum checks a result of LayerNormBwd that is summed over the rows.
func (c *check) columnSum(name string, t *tensor.Tensor, a LayerNormBwdArgs) {
	if c.compute(name, t) {
		c.elements(name, t, a.X.Shape().Cols(), "one a column")
		c.disjointFrom(name, t, named{"dx", a.DX}, named{"dz", a.DZ}, named{"x", a.X}, named{"mu", a.Mu}, named{"rsigma", a.RSigma}, named{"gamma", a.Gamma})
	}
}
