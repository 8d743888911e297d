package ops

import "github.com/primus-fl/primus/tensor"

// bound is how far the results of an op may be from the oracle's. Impls compute
// in f32 or better and round once, so the bound of f64 storage is that of f32,
// and narrow storage adds the one unit by which two roundings of nearly equal
// values differ.
type bound struct {
	op     string
	wide   tensor.Tolerance // f32, f64
	narrow tensor.Tolerance // bf16, f16
	reason string
}

// arithmetic is the bound of an op whose f32 arithmetic is off by abs + rel·|want|.
func arithmetic(op string, abs, rel float64, reason string) bound {
	return bound{
		op:     op,
		wide:   tensor.Tolerance{Abs: abs, Rel: rel},
		narrow: tensor.Tolerance{Abs: 2 * abs, Rel: 2 * rel, ULP: 1},
		reason: reason,
	}
}

// bounds is the one table of tolerances. They hold for the operands that the
// cases make: values of magnitude 1 unless a case says otherwise.
func bounds() []bound {
	single := tensor.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24}
	return []bound{
		arithmetic("generic_gemm", 5e-5, 1e-5, "sums of up to 515 products, partial sums near 10: √515 roundings of 10·2⁻²⁴, four sigma"),
		arithmetic("rmsnorm_fwd", 1e-6, 5e-6, "a sum of up to 1024 squares, a root and two products"),
		arithmetic("rmsnorm_bwd", 2e-5, 2e-5, "sums over rows and columns of up to 1024 products that cancel"),
		arithmetic("swiglu", 1e-6, 3e-6, "one exponential of 2 ulp and three operations"),
		arithmetic("dswiglu", 2e-6, 1e-5, "as swiglu; 1−σ cancels where σ is near 1"),
		{op: "residual_add", wide: single, narrow: tensor.Tolerance{}, reason: "one rounded sum; f32 holds the sum of two narrow values well enough to round it as if it were exact"},
		arithmetic("fused_attn_fwd", 1e-5, 1e-5, "scores up to 30 carry 30·2⁻²⁴·√d into the exponent"),
		arithmetic("fused_attn_bwd", 5e-5, 2e-5, "as forward, and dP − rowsum(dO∘O) cancels"),
		arithmetic("fused_rope_forward", 2e-6, 0, "cosine and sine of f32 angles up to 4096, products of magnitude 1"),
		arithmetic("fused_rope_backward", 2e-6, 0, "as forward"),
		arithmetic("multi_tensor_adam", 2e-6, 1e-5, "β^step in f32 loses 1e-6 relative in c₁ and c₂"),
		arithmetic("multi_tensor_l2norm", 0, 2e-5, "a sum of up to 5000 squares"),
		{op: "multi_tensor_scale", wide: single, narrow: tensor.Tolerance{ULP: 1}, reason: "one product; to narrow storage it may be rounded to f32 first"},
		{op: "embedding_fwd", reason: "a copy"},
		arithmetic("embedding_bwd", 2e-5, 1e-5, "sums of up to 600 rows, partial sums near 15"),
		arithmetic("cross_entropy_fwd", 5e-5, 1e-5, "logits up to 200 carry 200·2⁻²⁴ into the log-sum-exp"),
		arithmetic("cross_entropy_bwd", 2e-6, 2e-5, "differences logit − lse up to 200 carry 200·2⁻²⁴ into the exponent"),
	}
}

// Tolerance returns how far a written operand of dtype d of an op may be from what
// another right implementation computes, for operands of magnitude 1, and why. It
// is zero, equality, for integers and for an op that is not of the catalogue,
// whose reason is "".
func Tolerance(op string, d tensor.DType) (tol tensor.Tolerance, reason string) {
	for _, b := range bounds() {
		switch {
		case b.op != op:
			continue
		case !d.IsFloat():
			return tensor.Tolerance{}, b.reason
		case d == tensor.F32 || d == tensor.F64:
			return b.wide, b.reason
		default:
			return b.narrow, b.reason
		}
	}
	return tensor.Tolerance{}, ""
}
