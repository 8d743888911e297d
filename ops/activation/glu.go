package activation

import "github.com/primus-fl/primus/opregistry"

// SwiGLUArgs are the arguments of SwiGLU.
type SwiGLUArgs = ActivationArgs

// DSwiGLUArgs are the arguments of DSwiGLU.
type DSwiGLUArgs = DActivationArgs

// SwiGLU multiplies the second half of each row by the SiLU of the first.
var SwiGLU = newGLU("swiglu", "SiLU-gated linear unit of rows [a, b]", `
		swiglu multiplies the second half of each row by the SiLU of the first:

		  y[r,i] = a·σ(a)·b      a = x[r,i], b = x[r,H+i], σ(a) = 1/(1+e^−a)

		Any compute dtype, one for both; arithmetic in f32. Source: Shazeer 2020, arXiv:2002.05202.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[2.193 -0.9536]]
	`,
	opregistry.Arithmetic(1e-6, 3e-6, "one exponential of 2 ulp and three operations"))

// GLU is SwiGLU with the logistic function in place of SiLU, y = σ(a)·b.
var GLU = newGLU("glu", "linear unit of rows [a, b] gated by the logistic function", `
		glu is swiglu with the logistic function in place of SiLU, y = σ(a)·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[2.193 0.4768]]
	`,
	opregistry.Arithmetic(2e-6, 3e-6, "one exponential and two operations, times values up to 8"))

// GEGLU is SwiGLU with GELU in place of SiLU, y = gelu(a)·b.
var GEGLU = newGLU("geglu", "GELU-gated linear unit of rows [a, b]", `
		geglu is swiglu with GELU in place of SiLU, y = gelu(a)·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[2.524 -0.1816]]
	`,
	opregistry.Arithmetic(2e-5, 5e-6, "as gelu, times values up to 8"))

// GEGLUErf is SwiGLU with GELUErf in place of SiLU, y = gelu_erf(a)·b.
var GEGLUErf = newGLU("geglu_erf", "exact-GELU-gated linear unit of rows [a, b]", `
		geglu_erf is swiglu with gelu_erf in place of SiLU, y = gelu_erf(a)·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[2.524 -0.182]]
	`,
	opregistry.Arithmetic(2e-5, 5e-6, "as gelu_erf, times values up to 8"))

// QGEGLU is SwiGLU with QGELU in place of SiLU, y = qgelu(a)·b.
var QGEGLU = newGLU("qgeglu", "QGELU-gated linear unit of rows [a, b]", `
		qgeglu is swiglu with QGELU in place of SiLU, y = qgelu(a)·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[2.537 -0.2574]]
	`,
	opregistry.Arithmetic(8e-6, 3e-6, "as qgelu, times values up to 8"))

// ReGLU is SwiGLU with ReLU in place of SiLU, y = max(a, 0)·b.
var ReGLU = newGLU("reglu", "ReLU-gated linear unit of rows [a, b]", `
		reglu is swiglu with ReLU in place of SiLU, y = max(a, 0)·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[1 -2 3 4]] → output=[[3 0]]
	`,
	opregistry.Arithmetic(0, 2e-7, "one product"))

// SReGLU is SwiGLU with SReLU in place of SiLU, y = max(a, 0)²·b.
var SReGLU = newGLU("sreglu", "SReLU-gated linear unit of rows [a, b]", `
		sreglu is swiglu with SReLU in place of SiLU, y = max(a, 0)²·b.

		Arguments:

		  input   x, [.., 2H]: a, then b
		  output  y, [.., H]

		Example:

		  input=[[2 -2 3 4]] → output=[[12 0]]
	`,
	opregistry.Arithmetic(0, 3e-7, "two products"))

// DSwiGLU is the gradient of SwiGLU.
var DSwiGLU = newDGLU("dswiglu", "gradient of swiglu", `
		dswiglu is the gradient of swiglu:

		  dx[r,i]   = dy·b·(σ(a) + a·σ(a)·(1−σ(a)))
		  dx[r,H+i] = dy·a·σ(a)

		Dtypes are those of swiglu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[2.783 -0.7263 0.7311 -0.4768]]
	`,
	opregistry.Arithmetic(2e-6, 1e-5, "as swiglu; 1−σ cancels where σ is near 1"))

// DGLU is the gradient of GLU.
var DGLU = newDGLU("dglu", "gradient of glu", `
		dglu is the gradient of glu: dx = [dy·b·σ(a)·(1−σ(a)), dy·σ(a)], with the operands of
		dswiglu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[0.5898 0.8399 0.7311 0.2384]]
	`,
	opregistry.Arithmetic(2e-6, 1e-5, "σ·(1−σ) times values up to 8; 1 − σ cancels"))

// DGEGLU is the gradient of GEGLU.
var DGEGLU = newDGLU("dgeglu", "gradient of geglu", `
		dgeglu is the gradient of geglu: dx = [dy·b·gelu'(a), dy·gelu(a)], with the operands of
		dswiglu and the derivative of dgelu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[3.249 -0.6888 0.8412 -0.0908]]
	`,
	opregistry.Arithmetic(2.5e-5, 1e-5, "as dgelu, times values up to 8"))

// DGEGLUErf is the gradient of GEGLUErf.
var DGEGLUErf = newDGLU("dgeglu_erf", "gradient of geglu_erf", `
		dgeglu_erf is the gradient of geglu_erf: dx = [dy·b·gelu_erf'(a), dy·gelu_erf(a)], with the
		operands of dswiglu and the derivative of dgelu_erf.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[3.25 -0.6818 0.8413 -0.091]]
	`,
	opregistry.Arithmetic(2.5e-5, 1e-5, "as dgelu_erf, times values up to 8"))

// DQGEGLU is the gradient of QGEGLU.
var DQGEGLU = newDGLU("dqgeglu", "gradient of qgeglu", `
		dqgeglu is the gradient of qgeglu: dx = [dy·b·qgelu'(a), dy·qgelu(a)], with the operands of
		dswiglu and the derivative of dqgelu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[3.203 -0.5905 0.8458 -0.1287]]
	`,
	opregistry.Arithmetic(1.6e-5, 1e-5, "as dqgelu, times values up to 8"))

// DReGLU is the gradient of ReGLU.
var DReGLU = newDGLU("dreglu", "gradient of reglu", `
		dreglu is the gradient of reglu: dx = [dy·b·relu'(a), dy·max(a, 0)], with the operands of
		dswiglu and the derivative of drelu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[3 0 1 0]]
	`,
	opregistry.Arithmetic(0, 2e-7, "two products"))

// DSReGLU is the gradient of SReGLU.
var DSReGLU = newDGLU("dsreglu", "gradient of sreglu", `
		dsreglu is the gradient of sreglu: dx = [dy·b·2·max(a, 0), dy·max(a, 0)²], with the operands
		of dswiglu.

		Arguments:

		  grad       dy, [.., H]
		  fwd_input  x, [.., 2H]: the input of the function
		  output     dx, [.., 2H]

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] → output=[[6 0 1 0]]
	`,
	opregistry.Arithmetic(0, 3e-7, "three products"))

func newGLU(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[ActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[ActivationArgs]{
		Doc: doc, Formula: formula, Tolerance: tolerance,
		Where: "input [.. 2*h]; output [.. h] may=",
	})
}

func newDGLU(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[DActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DActivationArgs]{
		Doc: doc, Formula: formula, Tolerance: tolerance,
		Where: "grad [.. h]; fwd_input [.. 2*h]; output [.. 2*h] may=fwd_input",
	})
}
