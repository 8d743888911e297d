package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ActivationArgs are the arguments of an activation function: an elementwise one such as GELU,
// whose operands have one shape, or a gated one such as GEGLU.
type ActivationArgs struct {
	Input  *tensor.Tensor `op:"0 input read compute [..]"`            // x; [.., 2H] of a gated function: a, then b
	Output *tensor.Tensor `op:"1 output write =input [..] may=input"` // y; [.., H] of a gated function
}

// DActivationArgs are the arguments of the gradient of an activation function.
type DActivationArgs struct {
	Grad     *tensor.Tensor `op:"0 grad read =fwd_input [..]"`                       // dy
	FwdInput *tensor.Tensor `op:"1 fwd_input read compute [..] lead"`                // x, the input of the function
	Output   *tensor.Tensor `op:"2 output write =fwd_input [..] may=grad,fwd_input"` // dx
}

// DBiasDActivationArgs are the arguments of DBiasDGELU and the other ops named DBiasD….
type DBiasDActivationArgs struct {
	Grad     *tensor.Tensor `op:"0 grad read =fwd_input [.. cols]"`        // dy
	FwdInput *tensor.Tensor `op:"1 fwd_input read compute [.. cols] lead"` // x
	DBias    *tensor.Tensor `op:"2 dbias write compute (cols)"`
	Output   *tensor.Tensor `op:"3 output write =fwd_input [.. cols] may=grad,fwd_input"` // dx
}

// GELU is the Gaussian error linear unit in its tanh form.
var GELU = newActivation("gelu", "Gaussian error linear unit, tanh form", `
		gelu is the Gaussian error linear unit in its tanh form:

		  y = x · (½ + ½·tanh(√(2/π)·(x + 0.044715·x³)))

		Any compute dtype, one for both; arithmetic in f32 or better, one rounding. An x of −∞ gives
		NaN. Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[-0.1588 0 0.8412 1.955]
	`,
	opregistry.Arithmetic(2e-6, 5e-6, "one hyperbolic tangent of 2 ulp; ½ + ½·tanh cancels for x < 0"))

// GELUErf is the Gaussian error linear unit itself.
var GELUErf = newActivation("gelu_erf", "Gaussian error linear unit, exact form", `
		gelu_erf is the Gaussian error linear unit in its exact form:

		  y = x · Φ(x)      Φ(x) = ½ · (1 + erf(x/√2))

		Operands are those of gelu. An x of −∞ gives NaN. Source: as for gelu.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[-0.1587 0 0.8413 1.954]
	`,
	opregistry.Arithmetic(2e-6, 5e-6, "as gelu; one exponential of x²/2"))

// QGELU is the Gaussian error linear unit by the logistic function.
var QGELU = newActivation("qgelu", "Gaussian error linear unit, logistic form", `
		qgelu is the Gaussian error linear unit by the logistic function:

		  y = x · σ(1.702·x)      σ(x) = 1/(1+e^−x)

		Operands are those of gelu. An x of −∞ gives NaN. Source: as for gelu.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[-0.1542 0 0.8458 1.936]
	`,
	opregistry.Arithmetic(1e-6, 3e-6, "as swiglu"))

// ReLU is the rectified linear unit.
var ReLU = newActivation("relu", "rectified linear unit", `
		relu is the rectified linear unit:

		  y = max(x, 0)

		Operands are those of gelu. A NaN stays NaN.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[0 0 1 2]
	`,
	opregistry.Arithmetic(0, 1e-7, "x, rounded to f32 at most"))

// SReLU is the squared rectified linear unit.
var SReLU = newActivation("srelu", "squared rectified linear unit", `
		srelu is the squared rectified linear unit:

		  y = max(x, 0)²

		Operands are those of gelu. A NaN stays NaN. Source: So et al. 2021, arXiv:2109.08668.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[0 0 1 4]
	`,
	opregistry.Arithmetic(0, 2e-7, "one product"))

// SiLU is the sigmoid linear unit.
var SiLU = newActivation("silu", "sigmoid linear unit", `
		silu is the sigmoid linear unit:

		  y = x · σ(x)      σ(x) = 1/(1+e^−x)

		Operands are those of gelu. An x of −∞ gives NaN. Source: Elfwing et al. 2017,
		arXiv:1702.03118.

		Arguments:

		  input   x
		  output  y

		Example:

		  input=[-1 0 1 2] → output=[-0.2689 0 0.7311 1.762]
	`,
	opregistry.Arithmetic(1e-6, 3e-6, "as swiglu"))

// DGELU is the gradient of GELU.
var DGELU = newDActivation("dgelu", "gradient of gelu", `
		dgelu is the gradient of gelu:

		  dx = dy · (½·(1+t) + ½·x·(1−t²)·√(2/π)·(1 + 0.134145·x²))      t = tanh(√(2/π)·(x + 0.044715·x³))

		Dtypes are those of gelu. The product is formed as written: a NaN or an infinity in dy is
		multiplied by a derivative of 0 as IEEE 754 defines it.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[-0.08296 0.5 2.166]
	`,
	opregistry.Arithmetic(3e-6, 1e-5, "1 − t² is off by 2⁻²³ where the factor beside it is up to 10"))

// DGELUErf is the gradient of GELUErf.
var DGELUErf = newDActivation("dgelu_erf", "gradient of gelu_erf", `
		dgelu_erf is the gradient of gelu_erf:

		  dx = dy · (Φ(x) + x·φ(x))      φ(x) = exp(−x²/2)/√(2π)

		Operands are those of dgelu. An x of −∞ or +∞ gives NaN.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[-0.08332 0.5 2.167]
	`,
	opregistry.Arithmetic(3e-6, 1e-5, "one exponential of x²/2; Φ + x·φ cancels for x < 0"))

// DQGELU is the gradient of QGELU.
var DQGELU = newDActivation("dqgelu", "gradient of qgelu", `
		dqgelu is the gradient of qgelu:

		  dx = dy · (s + 1.702·x·s·(1−s))      s = σ(1.702·x)

		Operands are those of dgelu.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[-0.06778 0.5 2.136]
	`,
	opregistry.Arithmetic(2e-6, 1e-5, "as dsilu"))

// DReLU is the gradient of ReLU.
var DReLU = newDActivation("drelu", "gradient of relu", `
		drelu is the gradient of relu:

		  dx = dy · 1 for x > 0, dy · 0 for x ≤ 0

		Operands are those of dgelu. An x of NaN gives NaN.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[0 0 2]
	`,
	opregistry.Arithmetic(0, 1e-7, "one product with 0 or 1"))

// DSReLU is the gradient of SReLU.
var DSReLU = newDActivation("dsrelu", "gradient of srelu", `
		dsrelu is the gradient of srelu:

		  dx = dy · 2·max(x, 0)

		Operands are those of dgelu.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[0 0 4]
	`,
	opregistry.Arithmetic(0, 2e-7, "one product"))

// DSiLU is the gradient of SiLU.
var DSiLU = newDActivation("dsilu", "gradient of silu", `
		dsilu is the gradient of silu:

		  dx = dy · (s + x·s·(1−s))      s = σ(x)

		Operands are those of dgelu.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of the function
		  output     dx

		Example:

		  grad=[1 1 2] fwd_input=[-1 0 1] → output=[0.07233 0.5 1.855]
	`,
	opregistry.Arithmetic(2e-6, 1e-5, "one exponential and four operations; 1 − σ cancels"))

// DBiasDGELU is DGELU followed by the gradient of a bias that was added to x.
var DBiasDGELU = newDBiasDActivation("dbias_dgelu", "gradient of gelu and of the bias before it", `
		dbias_dgelu is dgelu followed by the gradient of a bias that was added to x:

		  dx       = dy · gelu'(x)
		  dbias[i] = Σ_r dx[r,i]

		dbias sums dx before it is rounded, in f32 or better and in a fixed order of rows. rows = 0
		zeroes dbias. Source: TransformerEngine 2.14, dbias_dgelu.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[2.083 2.672] output=[[-0.08296 0.5]
		    [2.166 2.172]]
	`,
	opregistry.Arithmetic(2e-5, 1e-5, "as dgelu; a sum of up to 70 values near 1"))

// DBiasDGELUErf is DBiasDGELU for GELUErf.
var DBiasDGELUErf = newDBiasDActivation("dbias_dgelu_erf", "gradient of gelu_erf and of the bias before it", `
		dbias_dgelu_erf is dbias_dgelu for gelu_erf: dgelu_erf and the sum of dx over the rows.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[2.083 2.67] output=[[-0.08332 0.5]
		    [2.167 2.17]]
	`,
	opregistry.Arithmetic(2e-5, 1e-5, "as dgelu_erf; a sum of up to 70 values near 1"))

// DBiasDSiLU is DBiasDGELU for SiLU.
var DBiasDSiLU = newDBiasDActivation("dbias_dsilu", "gradient of silu and of the bias before it", `
		dbias_dsilu is dbias_dgelu for SiLU: dsilu and the sum of dx over the rows.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[1.928 2.682] output=[[0.07233 0.5]
		    [1.855 2.182]]
	`,
	opregistry.Arithmetic(2e-5, 1e-5, "as dsilu; a sum of up to 70 values near 1"))

// DBiasDReLU is DBiasDGELU for ReLU.
var DBiasDReLU = newDBiasDActivation("dbias_drelu", "gradient of relu and of the bias before it", `
		dbias_drelu is dbias_dgelu for ReLU: drelu and the sum of dx over the rows.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[2 2] output=[[0 0] [2 2]]
	`,
	opregistry.Arithmetic(2e-5, 1e-5, "a sum of up to 70 values up to 1"))

// DBiasDQGELU is DBiasDGELU for QGELU.
var DBiasDQGELU = newDBiasDActivation("dbias_dqgelu", "gradient of qgelu and of the bias before it", `
		dbias_dqgelu is dbias_dgelu for QGELU: dqgelu and the sum of dx over the rows.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[2.068 2.648] output=[[-0.06778 0.5]
		    [2.136 2.148]]
	`,
	opregistry.Arithmetic(2e-5, 1e-5, "as dqgelu; a sum of up to 70 values near 1"))

// DBiasDSReLU is DBiasDGELU for SReLU.
var DBiasDSReLU = newDBiasDActivation("dbias_dsrelu", "gradient of srelu and of the bias before it", `
		dbias_dsrelu is dbias_dgelu for SReLU: dsrelu and the sum of dx over the rows.

		Arguments:

		  grad       dy
		  fwd_input  x
		  output     dx

		Example:

		  grad=[[1 1] [2 2]] fwd_input=[[-1 0] [1 2]] → dbias=[4 8] output=[[0 0] [4 8]]
	`,
	opregistry.Arithmetic(1e-4, 1e-5, "a sum of up to 70 values up to 16"))

func newActivation(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[ActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[ActivationArgs]{Doc: doc, Formula: formula, Tolerance: tolerance})
}

func newDActivation(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[DActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DActivationArgs]{Doc: doc, Formula: formula, Tolerance: tolerance})
}

func newDBiasDActivation(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[DBiasDActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DBiasDActivationArgs]{Doc: doc, Formula: formula, Tolerance: tolerance})
}
