package norm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// RMSNormFwdArgs are the arguments of RMSNormFwd.
type RMSNormFwdArgs struct {
	Input             *tensor.Tensor `op:"0 input read compute [.. cols>0]"`
	Weight            *tensor.Tensor `op:"1 weight read compute (cols)"`
	Output            *tensor.Tensor `op:"2 output write compute [.. cols>0] may=input"`
	RSigma            *tensor.Tensor `op:"3 rsigma write f32 (rows)"`
	Eps               float32        `op:"4 eps >0"`
	ZeroCenteredGamma bool           `op:"5 zero_centered_gamma"`
	Saved             *opregistry.Saved
}

// RMSNormFwd normalises each row by its root mean square.
var RMSNormFwd = opregistry.NewOp("rmsnorm_fwd", opregistry.Schema[RMSNormFwdArgs]{
	Doc: "root-mean-square normalisation of rows",
	Formula: `
		rmsnorm_fwd normalises each row by its root mean square:

		  rsigma[r] = 1 / sqrt(mean_j(x[r,j]²) + eps)
		  y[r,i]    = x[r,i] · rsigma[r] · g[i]       g = γ, or γ+1 with zero_centered_gamma

		x is read, y and rsigma are written; y may be x. y has any compute dtype; sums and rsigma
		are f32 or better. eps > 0. cols = 0 is an error. A NaN in a row makes that row NaN. Source:
		Zhang and Sennrich 2019, arXiv:1910.07467, with eps inside the root.

		Arguments:

		  input   x
		  weight  γ
		  output  y

		Example:

		  input=[[3 4] [0 1]] weight=[1 2] eps=0.5 → output=[[0.8321 2.219] [0 2]] rsigma=[0.2774 1]
		  input=[[3 4]] weight=[1 2] eps=0.5 zero_centered_gamma=1 → output=[[1.664 3.328]]
		    rsigma=[0.2774]
	`,
	Family:    "rmsnorm",
	Forward:   true,
	Tolerance: opregistry.Arithmetic(1e-6, 5e-6, "a sum of up to 1024 squares, a root and two products"),
})

// RMSNormBwdArgs are the arguments of RMSNormBwd.
type RMSNormBwdArgs struct {
	DZ                *tensor.Tensor `op:"0 dz read compute [.. cols>0]"`
	X                 *tensor.Tensor `op:"1 x read compute [.. cols>0] lead"`
	RSigma            *tensor.Tensor `op:"2 rsigma read f32 (rows)"`
	Gamma             *tensor.Tensor `op:"3 gamma read compute (cols)"`
	DX                *tensor.Tensor `op:"4 dx write compute [.. cols>0] may=dz"`
	DGamma            *tensor.Tensor `op:"5 dgamma write compute (cols)"`
	ZeroCenteredGamma bool           `op:"6 zero_centered_gamma"`
	Saved             *opregistry.Saved
}

// RMSNormBwd is the gradient of RMSNormFwd.
var RMSNormBwd = opregistry.NewOp("rmsnorm_bwd", opregistry.Schema[RMSNormBwdArgs]{
	Doc: "gradient of rmsnorm_fwd",
	Formula: `
		rmsnorm_bwd is the gradient of rmsnorm_fwd. With x̂ = x·rsigma and ḡ = dz·g:

		  dx[r,i]   = rsigma[r] · (ḡ[r,i] − x̂[r,i] · mean_j(ḡ[r,j]·x̂[r,j]))
		  dgamma[i] = Σ_r dz[r,i] · x̂[r,i]

		dz, x, rsigma and gamma are read; dx and dgamma are written; dx may be dz. Sums are f32 or
		better; over the rows of dgamma they run in a fixed order. rows = 0 zeroes dgamma. Source:
		as for rmsnorm_fwd.

		Arguments:

		  dz      gradient of y
		  rsigma  from rmsnorm_fwd
		  gamma   γ

		Example:

		  dz=[[1 0] [2 -1]] x=[[3 4] [0 1]] rsigma=[0.25 1] gamma=[1 2] → dx=[[0.1797 -0.09375] [2
		    -1]] dgamma=[0.75 -1]
	`,
	Family:    "rmsnorm",
	Tolerance: opregistry.Arithmetic(2e-5, 2e-5, "sums over rows and columns of up to 1024 products that cancel"),
})

// RMSNormBwdAddArgs are the arguments of RMSNormBwdAdd.
type RMSNormBwdAddArgs struct {
	DZ                *tensor.Tensor `op:"0 dz read compute [.. cols>0]"`
	X                 *tensor.Tensor `op:"1 x read compute [.. cols>0] lead"`
	Add               *tensor.Tensor `op:"2 add read compute [.. cols>0]"`
	RSigma            *tensor.Tensor `op:"3 rsigma read f32 (rows)"`
	Gamma             *tensor.Tensor `op:"4 gamma read compute (cols)"`
	DX                *tensor.Tensor `op:"5 dx write compute [.. cols>0] may=dz,add"`
	DGamma            *tensor.Tensor `op:"6 dgamma write compute (cols)"`
	ZeroCenteredGamma bool           `op:"7 zero_centered_gamma"`
}

// RMSNormBwdAdd is RMSNormBwd with the gradient of a residual connection.
var RMSNormBwdAdd = opregistry.NewOp("rmsnorm_bwd_add", opregistry.Schema[RMSNormBwdAddArgs]{
	Doc: "gradient of rmsnorm_fwd, added to another one",
	Formula: `
		rmsnorm_bwd_add is rmsnorm_bwd with the gradient of a residual connection:

		  dx[r,i] = (dx of rmsnorm_bwd)[r,i] + add[r,i]

		added in f32 or better before dx is rounded once. dx may be dz or add. Otherwise it is like
		rmsnorm_bwd, with one exception: any impl may serve the call, no matter which one ran
		rmsnorm_fwd. rsigma must therefore be what rmsnorm_fwd defines. Source: TransformerEngine
		2.14, rmsnorm_bwd_add.

		Arguments:

		  dz      gradient of y
		  add     gradient of x from elsewhere
		  rsigma  from rmsnorm_fwd
		  gamma   γ

		Example:

		  dz=[[1 0]] x=[[3 4]] add=[[10 20]] rsigma=[0.25] gamma=[1 2] → dx=[[10.18 19.91]]
		    dgamma=[0.75 0]
	`,
	Tolerance: opregistry.Arithmetic(2e-5, 2e-5, "as rmsnorm_bwd"),
})

// Bwd returns the arguments of the call without Add.
func (a RMSNormBwdAddArgs) Bwd() RMSNormBwdArgs {
	return RMSNormBwdArgs{
		DZ: a.DZ, X: a.X, RSigma: a.RSigma, Gamma: a.Gamma, DX: a.DX, DGamma: a.DGamma,
		ZeroCenteredGamma: a.ZeroCenteredGamma,
	}
}
