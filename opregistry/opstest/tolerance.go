package opstest

import (
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// bound is how far the results of an op may be from the oracle's. Impls compute
// in f32 or better and round once, so the bound of f64 storage is that of f32,
// and narrow storage adds the one unit by which two roundings of nearly equal
// values differ.
type bound struct {
	op     string
	wide   tensortest.Tolerance // f32, f64
	narrow tensortest.Tolerance // bf16, f16
	reason string
}

// arithmetic is the bound of an op whose f32 arithmetic is off by abs + rel·|want|.
func arithmetic(op string, abs, rel float64, reason string) bound {
	return bound{
		op:     op,
		wide:   tensortest.Tolerance{Abs: abs, Rel: rel},
		narrow: tensortest.Tolerance{Abs: 2 * abs, Rel: 2 * rel, ULP: 1},
		reason: reason,
	}
}

// bounds is the one table of tolerances. They hold for the operands that the
// cases make: values of magnitude 1 unless a case says otherwise.
func bounds() []bound {
	single := tensortest.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24}
	return []bound{
		arithmetic("generic_gemm", 5e-5, 1e-5, "sums of up to 515 products, partial sums near 10: √515 roundings of 10·2⁻²⁴, four sigma"),
		arithmetic("rmsnorm_fwd", 1e-6, 5e-6, "a sum of up to 1024 squares, a root and two products"),
		arithmetic("rmsnorm_bwd", 2e-5, 2e-5, "sums over rows and columns of up to 1024 products that cancel"),
		arithmetic("swiglu", 1e-6, 3e-6, "one exponential of 2 ulp and three operations"),
		arithmetic("dswiglu", 2e-6, 1e-5, "as swiglu; 1−σ cancels where σ is near 1"),
		{op: "residual_add", wide: single, narrow: tensortest.Tolerance{}, reason: "one rounded sum; f32 holds the sum of two narrow values well enough to round it as if it were exact"},
		arithmetic("fused_attn_fwd", 1e-5, 1e-5, "scores up to 30 carry 30·2⁻²⁴·√d into the exponent"),
		arithmetic("fused_attn_bwd", 5e-5, 2e-5, "as forward, and dP − rowsum(dO∘O) cancels"),
		arithmetic("fused_rope_forward", 2e-6, 0, "cosine and sine of f32 angles up to 4096, products of magnitude 1"),
		arithmetic("fused_rope_backward", 2e-6, 0, "as forward"),
		arithmetic("multi_tensor_adam", 2e-6, 1e-5, "β^step in f32 loses 1e-6 relative in c₁ and c₂"),
		arithmetic("multi_tensor_l2norm", 0, 2e-5, "a sum of up to 5000 squares"),
		{op: "multi_tensor_scale", wide: single, narrow: tensortest.Tolerance{ULP: 1}, reason: "one product; to narrow storage it may be rounded to f32 first"},
		{op: "embedding_fwd", reason: "a copy"},
		arithmetic("embedding_bwd", 2e-5, 1e-5, "sums of up to 600 rows, partial sums near 15"),
		arithmetic("cross_entropy_fwd", 5e-5, 1e-5, "logits up to 200 carry 200·2⁻²⁴ into the log-sum-exp"),
		arithmetic("cross_entropy_bwd", 2e-6, 2e-5, "differences logit − lse up to 200 carry 200·2⁻²⁴ into the exponent"),

		arithmetic("te_general_grouped_gemm", 2e-5, 1e-5, "as generic_gemm, sums of up to 70 products"),
		arithmetic("te_general_grouped_gemm_for_grouped_tensor", 2e-5, 1e-5, "as te_general_grouped_gemm"),
		arithmetic("te_general_grouped_gemm_for_discrete_in", 2e-5, 1e-5, "as te_general_grouped_gemm"),
		arithmetic("te_general_grouped_gemm_for_discrete_out", 2e-5, 1e-5, "as te_general_grouped_gemm"),
		{op: "moe_permute_fwd", reason: "a copy"},
		arithmetic("moe_permute_bwd", 5e-6, 2e-6, "sums of up to 64 terms, partial sums near 5"),
		arithmetic("moe_unpermute_fwd", 5e-6, 2e-6, "sums of up to 64 products, partial sums near 5"),
		arithmetic("moe_unpermute_bwd", 5e-6, 2e-6, "sums of up to 65 products, partial sums near 5"),
		{op: "moe_permute_with_routing_map", reason: "a copy"},
		arithmetic("moe_unpermute_with_routing_map", 5e-6, 2e-6, "sums of up to 60 rows, partial sums near 5"),
		{op: "moe_sort_chunks_fwd", reason: "a copy"},
		{op: "moe_sort_chunks_bwd", reason: "a copy"},
		{op: "fused_multi_row_padding", reason: "a copy"},
		{op: "fused_multi_row_unpadding", reason: "a copy"},
		arithmetic("fused_topk_with_score_function_fwd", 1e-6, 5e-6, "one exponential of 2 ulp, a sum of up to 64 scores and a quotient"),
		arithmetic("fused_topk_with_score_function_bwd", 5e-6, 5e-6, "differences of sums of up to 64 products that cancel"),
		arithmetic("fused_score_for_moe_aux_loss_fwd", 1e-6, 5e-6, "as fused_topk_with_score_function_fwd"),
		arithmetic("fused_score_for_moe_aux_loss_bwd", 5e-6, 5e-6, "as fused_topk_with_score_function_bwd"),
		arithmetic("fused_moe_aux_loss_fwd", 5e-5, 5e-6, "a sum of up to 2800 products up to 100 with a factor of 10⁻³"),
		arithmetic("fused_moe_aux_loss_bwd", 0, 1e-6, "two products"),
		{op: "fa_prepare_fwd", reason: "a copy"},
		{op: "fa_prepare_bwd", reason: "a copy"},
		{op: "copy_to_kv_cache", reason: "a copy"},
		{op: "convert_thd_to_bshd", reason: "a copy"},
		{op: "convert_bshd_to_thd", reason: "a copy"},
		arithmetic("gated_delta_net_forward", 1e-5, 1e-5, "70 updates of a state that forgets, sums of up to 16 products"),
		{op: "thd_get_partitioned_indices", reason: "integers"},
		{op: "thd_read_half_tensor", reason: "a copy"},
		{op: "thd_read_second_half_lse", reason: "a copy"},
		arithmetic("thd_second_half_lse_correction", 1e-6, 1e-6, "an exponential and a logarithm of 2 ulp"),
		arithmetic("thd_out_correction", 1e-6, 5e-6, "an exponential of up to e⁶ whose exponent carries 6·2⁻²³"),
		{op: "thd_grad_correction", wide: single, reason: "one rounded sum, as residual_add"},
	}
}

// tolerance returns the bound for a written operand of dtype d. Operands of an
// integer dtype have to be equal.
func (c *config) tolerance(op string, d tensor.DType) tensortest.Tolerance {
	if tol, ok := c.tolerances[d]; ok {
		return tol
	}
	for _, b := range bounds() {
		switch {
		case b.op != op || !d.IsFloat():
			continue
		case d == tensor.F32 || d == tensor.F64:
			return b.wide
		default:
			return b.narrow
		}
	}
	return tensortest.Tolerance{}
}

// gradTolerance bounds gradients in f64 of magnitude 1 against central
// differences: what limits them is the saved state, which is f32.
func gradTolerance() tensortest.Tolerance { return tensortest.Tolerance{Abs: 1e-6, Rel: 1e-6} }

// coarseGradTolerance is for losses that the forward op stores in f32: their
// rounding, 2⁻²⁴, is divided by the step of the difference.
func coarseGradTolerance() tensortest.Tolerance { return tensortest.Tolerance{Abs: 2e-5, Rel: 1e-5} }
