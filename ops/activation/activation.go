package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// ActivationArgs are the arguments of an activation function: an elementwise one such as GELU,
// whose operands have one shape, or a gated one such as GEGLU.
type ActivationArgs struct {
	Input  *tensor.Tensor // x; [.., 2H] of a gated function: a, then b
	Output *tensor.Tensor // y, shape of x; [.., H] of a gated function
}

// DActivationArgs are the arguments of the gradient of an activation function.
type DActivationArgs struct {
	Grad     *tensor.Tensor // dy, shape of y
	FwdInput *tensor.Tensor // x, the input of the function
	Output   *tensor.Tensor // dx, shape of x
}

// DBiasDActivationArgs are the arguments of DBiasDGELU and the other ops named DBiasD….
type DBiasDActivationArgs struct {
	Grad     *tensor.Tensor // dy [.., cols]
	FwdInput *tensor.Tensor // x, shape of dy
	DBias    *tensor.Tensor // [cols]
	Output   *tensor.Tensor // dx, shape of dy
}

// GELU is the Gaussian error linear unit in its tanh form:
//
//	y = x · (½ + ½·tanh(√(2/π)·(x + 0.044715·x³)))
//
// x is read, y is written; y may be x. Any compute dtype, one for both; arithmetic in f32 or
// better, one rounding. An x of −∞ gives NaN. Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
var GELU = newActivation("gelu", "Gaussian error linear unit, tanh form")

// QGELU is the Gaussian error linear unit by the logistic function:
//
//	y = x · σ(1.702·x)      σ(x) = 1/(1+e^−x)
//
// Operands, dtypes and aliasing are those of GELU. An x of −∞ gives NaN. Source: as for GELU.
var QGELU = newActivation("qgelu", "Gaussian error linear unit, logistic form")

// ReLU is the rectified linear unit:
//
//	y = max(x, 0)
//
// Operands, dtypes and aliasing are those of GELU. A NaN stays NaN.
var ReLU = newActivation("relu", "rectified linear unit")

// SReLU is the squared rectified linear unit:
//
//	y = max(x, 0)²
//
// Operands, dtypes and aliasing are those of GELU. A NaN stays NaN. Source: So et al.
// 2021, arXiv:2109.08668.
var SReLU = newActivation("srelu", "squared rectified linear unit")

// SiLU is the sigmoid linear unit:
//
//	y = x · σ(x)      σ(x) = 1/(1+e^−x)
//
// Operands, dtypes and aliasing are those of GELU. An x of −∞ gives NaN. Source: Elfwing
// et al. 2017, arXiv:1702.03118.
var SiLU = newActivation("silu", "sigmoid linear unit")

// DGELU is the gradient of GELU:
//
//	dx = dy · (½·(1+t) + ½·x·(1−t²)·√(2/π)·(1 + 0.134145·x²))      t = tanh(√(2/π)·(x + 0.044715·x³))
//
// dy and x are read, dx is written; dx may be dy or x. Dtypes are those of GELU. The product is
// formed as written: a NaN or an infinity in dy is multiplied by a derivative of 0 as IEEE 754
// defines it.
var DGELU = newDActivation("dgelu", "gradient of gelu")

// DQGELU is the gradient of QGELU:
//
//	dx = dy · (s + 1.702·x·s·(1−s))      s = σ(1.702·x)
//
// Operands, dtypes and aliasing are those of DGELU.
var DQGELU = newDActivation("dqgelu", "gradient of qgelu")

// DReLU is the gradient of ReLU:
//
//	dx = dy · 1 for x > 0, dy · 0 for x ≤ 0
//
// Operands, dtypes and aliasing are those of DGELU. An x of NaN gives NaN.
var DReLU = newDActivation("drelu", "gradient of relu")

// DSReLU is the gradient of SReLU:
//
//	dx = dy · 2·max(x, 0)
//
// Operands, dtypes and aliasing are those of DGELU.
var DSReLU = newDActivation("dsrelu", "gradient of srelu")

// DSiLU is the gradient of SiLU:
//
//	dx = dy · (s + x·s·(1−s))      s = σ(x)
//
// Operands, dtypes and aliasing are those of DGELU.
var DSiLU = newDActivation("dsilu", "gradient of silu")

// DBiasDGELU is DGELU followed by the gradient of a bias that was added to x:
//
//	dx       = dy · gelu'(x)
//	dbias[i] = Σ_r dx[r,i]
//
// dy and x are read, dbias and dx are written; dx may be dy or x. dbias has any compute dtype, the
// others have one; dbias sums dx before it is rounded, in f32 or better and in a fixed order of
// rows. rows = 0 zeroes dbias. Source: TransformerEngine 2.14, dbias_dgelu.
var DBiasDGELU = newDBiasDActivation("dbias_dgelu", "gradient of gelu and of the bias before it")

// DBiasDSiLU is DBiasDGELU for SiLU: DSiLU and the sum of dx over the rows.
var DBiasDSiLU = newDBiasDActivation("dbias_dsilu", "gradient of silu and of the bias before it")

// DBiasDReLU is DBiasDGELU for ReLU: DReLU and the sum of dx over the rows.
var DBiasDReLU = newDBiasDActivation("dbias_drelu", "gradient of relu and of the bias before it")

// DBiasDQGELU is DBiasDGELU for QGELU: DQGELU and the sum of dx over the rows.
var DBiasDQGELU = newDBiasDActivation("dbias_dqgelu", "gradient of qgelu and of the bias before it")

// DBiasDSReLU is DBiasDGELU for SReLU: DSReLU and the sum of dx over the rows.
var DBiasDSReLU = newDBiasDActivation("dbias_dsrelu", "gradient of srelu and of the bias before it")

func newActivation(name, doc string) *opregistry.Op[ActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[ActivationArgs]{
		Doc: doc,
		Validate: func(a ActivationArgs) error {
			c := check.Call{Op: name}
			if c.Compute("input", a.Input) {
				attention.Like(&c, "output", a.Output, "input", a.Input)
				c.DisjointOrSame("output", a.Output, "input", a.Input)
			}
			return c.Err
		},
		Lead:     ActivationArgs.lead,
		Operands: ActivationArgs.operands,
	})
}

func newDActivation(name, doc string) *opregistry.Op[DActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DActivationArgs]{
		Doc: doc,
		Validate: func(a DActivationArgs) error {
			c := check.Call{Op: name}
			dactivation(&c, a)
			return c.Err
		},
		Lead:     DActivationArgs.lead,
		Operands: DActivationArgs.operands,
	})
}

func newDBiasDActivation(name, doc string) *opregistry.Op[DBiasDActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DBiasDActivationArgs]{
		Doc: doc,
		Validate: func(a DBiasDActivationArgs) error {
			c := check.Call{Op: name}
			dactivation(&c, DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output})
			if c.Err == nil && c.MinRank("fwd_input", a.FwdInput, 1) && c.Compute("dbias", a.DBias) {
				c.Elements("dbias", a.DBias, a.FwdInput.Shape().Cols(), "one a column")
				c.DisjointFrom("dbias", a.DBias, check.Named{Name: "grad", Tensor: a.Grad}, check.Named{Name: "fwd_input", Tensor: a.FwdInput}, check.Named{Name: "output", Tensor: a.Output})
			}
			return c.Err
		},
		Lead: func(a DBiasDActivationArgs) *tensor.Tensor { return a.FwdInput },
		Operands: func(a DBiasDActivationArgs) []opregistry.Operand {
			return check.Operands{}.Read("grad", a.Grad).Read("fwd_input", a.FwdInput).Write("dbias", a.DBias).Write("output", a.Output)
		},
	})
}

func (a ActivationArgs) lead() *tensor.Tensor { return a.Input }

func (a DActivationArgs) lead() *tensor.Tensor { return a.FwdInput }

func (a ActivationArgs) operands() []opregistry.Operand {
	return check.Operands{}.Read("input", a.Input).Write("output", a.Output)
}

func (a DActivationArgs) operands() []opregistry.Operand {
	return check.Operands{}.Read("grad", a.Grad).Read("fwd_input", a.FwdInput).Write("output", a.Output)
}

// dactivation checks the operands of the gradient of an elementwise function.
func dactivation(c *check.Call, a DActivationArgs) {
	if !c.Compute("fwd_input", a.FwdInput) {
		return
	}
	attention.Like(c, "grad", a.Grad, "fwd_input", a.FwdInput)
	attention.Like(c, "output", a.Output, "fwd_input", a.FwdInput)
	c.DisjointOrSame("output", a.Output, "fwd_input", a.FwdInput)
	c.DisjointOrSame("output", a.Output, "grad", a.Grad)
}
