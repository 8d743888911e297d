package norm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// LayerNormFwdArgs are the arguments of LayerNormFwd.
type LayerNormFwdArgs struct {
	Input             *tensor.Tensor `op:"0 input read compute [.. cols>0]"`
	Weight            *tensor.Tensor `op:"1 weight read compute (cols)"`
	Bias              *tensor.Tensor `op:"2 bias read compute (cols) ?"`
	Output            *tensor.Tensor `op:"3 output write compute [.. cols>0] may=input"`
	Mu                *tensor.Tensor `op:"4 mu write f32 (rows)"`
	RSigma            *tensor.Tensor `op:"5 rsigma write f32 (rows)"`
	Eps               float32        `op:"6 eps >0"`
	ZeroCenteredGamma bool           `op:"7 zero_centered_gamma"`
	Saved             *opregistry.Saved
}

// LayerNormFwd shifts and scales each row to mean 0 and variance 1.
var LayerNormFwd = opregistry.NewOp("layernorm_fwd", opregistry.Schema[LayerNormFwdArgs]{
	Doc: "normalisation of rows to mean 0 and variance 1",
	Formula: `
		layernorm_fwd shifts and scales each row to mean 0 and variance 1:

		  mu[r]     = mean_j(x[r,j])
		  rsigma[r] = 1 / sqrt(mean_j((x[r,j] − mu[r])²) + eps)
		  y[r,i]    = (x[r,i] − mu[r]) · rsigma[r] · g[i] + β[i]     g = γ, or γ+1 with zero_centered_gamma

		x, γ and β are read; y, mu and rsigma are written; y may be x. weight, bias and y may each
		have any compute dtype; sums are f32 or better, mu and rsigma f32 for any dtype of x. eps >
		0. cols = 0 is an error. A NaN or an infinity in a row makes that row NaN. Source: Ba, Kiros
		and Hinton 2016, arXiv:1607.06450, with the biased variance and eps inside the root.

		Arguments:

		  input   x
		  weight  γ
		  bias    β, nil for 0
		  output  y

		Example:

		  input=[[1 3] [2 2]] weight=[1 2] bias=[0.5 0] eps=1 → output=[[-0.2071 1.414] [0.5 0]]
		    mu=[2 2] rsigma=[0.7071 1]
	`,
	Family:    "layernorm",
	Forward:   true,
	Tolerance: opregistry.Arithmetic(2e-6, 5e-6, "as rmsnorm_fwd, and x − mu cancels"),
})

// LayerNormBwdArgs are the arguments of LayerNormBwd.
type LayerNormBwdArgs struct {
	DZ                *tensor.Tensor `op:"0 dz read compute [.. cols>0]"`
	X                 *tensor.Tensor `op:"1 x read compute [.. cols>0] lead"`
	Mu                *tensor.Tensor `op:"2 mu read f32 (rows)"`
	RSigma            *tensor.Tensor `op:"3 rsigma read f32 (rows)"`
	Gamma             *tensor.Tensor `op:"4 gamma read compute (cols)"`
	DX                *tensor.Tensor `op:"5 dx write compute [.. cols>0] may=dz"`
	DGamma            *tensor.Tensor `op:"6 dgamma write compute (cols)"`
	DBeta             *tensor.Tensor `op:"7 dbeta write compute (cols) ?"`
	ZeroCenteredGamma bool           `op:"8 zero_centered_gamma"`
	Saved             *opregistry.Saved
}

// LayerNormBwd is the gradient of LayerNormFwd.
var LayerNormBwd = opregistry.NewOp("layernorm_bwd", opregistry.Schema[LayerNormBwdArgs]{
	Doc: "gradient of layernorm_fwd",
	Formula: `
		layernorm_bwd is the gradient of layernorm_fwd. With x̂ = (x − mu)·rsigma and ḡ = dz·g:

		  dx[r,i]   = rsigma[r] · (ḡ[r,i] − mean_j(ḡ[r,j]) − x̂[r,i] · mean_j(ḡ[r,j]·x̂[r,j]))
		  dgamma[i] = Σ_r dz[r,i] · x̂[r,i]
		  dbeta[i]  = Σ_r dz[r,i]

		dx, dgamma and dbeta are written, the others are read; dx may be dz. Sums are f32 or better;
		sums over the rows run in a fixed order. rows = 0 zeroes dgamma and dbeta. Source: as for
		layernorm_fwd.

		Arguments:

		  dz      gradient of y
		  mu      from layernorm_fwd
		  rsigma  from layernorm_fwd
		  gamma   γ
		  dbeta   nil when there is no bias

		Example:

		  dz=[[1 0] [2 -1]] x=[[1 3] [0 2]] mu=[2 1] rsigma=[1 0.5] gamma=[1 2] → dx=[[0 0] [0.75
		    -0.75]] dgamma=[-2 -0.5] dbeta=[3 -1]
	`,
	Family:    "layernorm",
	Tolerance: opregistry.Arithmetic(2e-5, 2e-5, "as rmsnorm_bwd, and a second mean is subtracted"),
})
