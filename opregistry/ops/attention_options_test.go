package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestFusedAttnOptions(t *testing.T) {
	type args = ops.FusedAttnFwdArgs
	flags := func(shape ...int) *tensor.Tensor { return of(tensor.Bool, shape...) }
	testValidation(t, ops.FusedAttnFwd, goodAttnFwd, []refusal[args]{
		{"window before the diagonal", func(a *args) { a.WindowSize = ops.Window(-2, 0) }, "window_size", "sizes >= -1"},
		{"window after the diagonal", func(a *args) { a.WindowSize = ops.Window(0, -2) }, "window_size", "sizes >= -1"},
		{"diagonal of another mask", func(a *args) { a.BottomRightDiagonal = ops.Bool(true) }, "bottom_right_diagonal", "that of causal"},
		{"diagonal of the mask", func(a *args) {
			a.AttnMaskType, a.BottomRightDiagonal = ops.CausalBottomRightMask, ops.Bool(false)
		}, "bottom_right_diagonal", "that of causal_bottom_right"},
		{"no attention_mask", func(a *args) { a.AttnMaskType = ops.ArbitraryMask }, "attention_mask", "a tensor"},
		{"attention_mask with causal", func(a *args) { a.AttentionMask = flags(1, 1, 5, 7) }, "attention_mask", "nil unless attn_mask_type is arbitrary"},
		{"dtype of attention_mask", func(a *args) { a.AttnMaskType, a.AttentionMask = ops.ArbitraryMask, f32(1, 1, 5, 7) }, "attention_mask", "dtype bool"},
		{"axes of attention_mask", func(a *args) { a.AttnMaskType, a.AttentionMask = ops.ArbitraryMask, flags(5, 7) }, "attention_mask", "4 axes"},
		{"keys of attention_mask", func(a *args) { a.AttnMaskType, a.AttentionMask = ops.ArbitraryMask, flags(2, 1, 5, 5) }, "attention_mask", "[2 4 5 7] or 1"},
		{"bias without a type", func(a *args) { a.Bias = f32(1, 4, 5, 7) }, "bias", "nil with no_bias"},
		{"bias with alibi", func(a *args) { a.BiasType, a.Bias = ops.ALiBi, f32(1, 4, 5, 7) }, "bias", "nil with alibi"},
		{"no bias", func(a *args) { a.BiasType = ops.PreScaleBias }, "bias", "a tensor"},
		{"dtype of bias", func(a *args) { a.BiasType, a.Bias = ops.PreScaleBias, of(tensor.BF16, 1, 4, 5, 7) }, "bias", "the dtype of Q"},
		{"shape of bias", func(a *args) { a.BiasType, a.Bias = ops.PostScaleBias, f32(1, 2, 5, 7) }, "bias", "[2 4 5 7] or 1"},
		{"unknown bias type", func(a *args) { a.BiasType = 9 }, "bias_type", "no_bias, pre_scale_bias"},
		{"slopes without alibi", func(a *args) { a.AlibiSlopes = f32(4) }, "alibi_slopes", "nil unless bias_type is alibi"},
		{"shape of slopes", func(a *args) { a.BiasType, a.AlibiSlopes = ops.ALiBi, f32(2, 2) }, "alibi_slopes", "[4] or [2 4]"},
		{"dtype of slopes", func(a *args) { a.BiasType, a.AlibiSlopes = ops.ALiBi, of(tensor.F64, 4) }, "alibi_slopes", "dtype f32"},
		{"unknown softmax type", func(a *args) { a.SoftmaxType = 9 }, "softmax_type", "vanilla, off-by-one or learnable"},
		{"no softmax_offset", func(a *args) { a.SoftmaxType = ops.LearnableSoftmax }, "softmax_offset", "a tensor"},
		{"softmax_offset of vanilla", func(a *args) { a.SoftmaxOffset = f32(4) }, "softmax_offset", "nil unless softmax_type is learnable"},
		{"length of softmax_offset", func(a *args) { a.SoftmaxType, a.SoftmaxOffset = ops.LearnableSoftmax, f32(2, 4) }, "softmax_offset", "4 elements"},
		{"negative dropout", func(a *args) { a.PDropout = -0.1 }, "p_dropout", "a number in [0, 1)"},
		{"dropout of everything", func(a *args) { a.PDropout = 1 }, "p_dropout", "a number in [0, 1)"},
		{"dropout nan", func(a *args) { a.PDropout = float32(math.NaN()) }, "p_dropout", "a number in [0, 1)"},
		{"lengths without padding", func(a *args) { a.CuSeqlensQ = i32(0, 3, 5) }, "cu_seqlens_q", "nil unless attn_mask_type is one with padding"},
		{"lengths of keys without padding", func(a *args) { a.CuSeqlensKV = i32(0, 3, 5) }, "cu_seqlens_kv", "nil unless attn_mask_type is one with padding"},
		{"gaps without thd", func(a *args) { a.CuSeqlensKVPadded = i32(0, 3, 5) }, "cu_seqlens_kv_padded", "nil unless qkv_format is thd"},
		{"O over bias", func(a *args) { a.BiasType, a.Bias = ops.PreScaleBias, over(a.O, tensor.Shape{1, 4, 5, 7}) }, "O", "memory apart from bias"},
		{"stats over slopes", func(a *args) { a.BiasType, a.AlibiSlopes = ops.ALiBi, flat(a.Stats, 4) }, "stats", "memory apart from alibi_slopes"},
	})
	testAccepted(t, ops.FusedAttnFwd, goodAttnFwd, map[string]func(a *args){
		"mask of keys":    func(a *args) { a.AttnMaskType, a.AttentionMask = ops.ArbitraryMask, flags(2, 1, 1, 7) },
		"open window":     func(a *args) { a.WindowSize = ops.Window(-1, -1) },
		"slopes by batch": func(a *args) { a.BiasType, a.AlibiSlopes = ops.ALiBi, f32(2, 4) },
		"same diagonal":   func(a *args) { a.BottomRightDiagonal = ops.Bool(false) },
		"diagonal":        func(a *args) { a.AttnMaskType, a.BottomRightDiagonal = ops.NoMask, ops.Bool(true) },
	})
}

func TestFusedAttnLengths(t *testing.T) {
	type args = ops.FusedAttnFwdArgs
	good := func() args {
		a := goodAttnFwd()
		a.AttnMaskType, a.CuSeqlensQ, a.CuSeqlensKV = ops.PaddingMask, i32(0, 5, 8), i32(0, 0, 7)
		return a
	}
	testValidation(t, ops.FusedAttnFwd, good, []refusal[args]{
		{"no lengths of queries", func(a *args) { a.CuSeqlensQ = nil }, "cu_seqlens_q", "a tensor"},
		{"no lengths of keys", func(a *args) { a.CuSeqlensKV = nil }, "cu_seqlens_kv", "a tensor"},
		{"dtype of lengths", func(a *args) { a.CuSeqlensQ = i64(0, 5, 8) }, "cu_seqlens_q", "dtype i32"},
		{"axes of lengths", func(a *args) { a.CuSeqlensQ = of(tensor.I32, 1, 3) }, "cu_seqlens_q", "1 axes"},
		{"first length", func(a *args) { a.CuSeqlensQ = i32(1, 5, 8) }, "cu_seqlens_q", "0 first"},
		{"none at all", func(a *args) { a.CuSeqlensKV = i32() }, "cu_seqlens_kv", "0 first"},
		{"falling lengths", func(a *args) { a.CuSeqlensKV = i32(0, 5, 4) }, "cu_seqlens_kv", "values that do not fall"},
		{"too few", func(a *args) { a.CuSeqlensKV = i32(0, 5) }, "cu_seqlens_kv", "3 elements"},
		{"too long", func(a *args) { a.CuSeqlensQ = i32(0, 2, 8) }, "cu_seqlens", "at most 5 queries and 7 keys"},
	})
	packed := func() args {
		return args{
			Q: f32(9, 4, 8), K: f32(12, 2, 8), V: f32(12, 2, 6), O: f32(9, 4, 6), Stats: f32(9, 4, 1),
			QKVFormat: ops.THD, AttnMaskType: ops.PaddingCausalMask, Saved: new(opregistry.Saved),
			AttnOptions: ops.AttnOptions{CuSeqlensQ: i32(0, 5, 8), CuSeqlensKV: i32(0, 5, 11), CuSeqlensQPadded: i32(0, 6, 9), CuSeqlensKVPadded: i32(0, 5, 12)},
		}
	}
	testValidation(t, ops.FusedAttnFwd, packed, []refusal[args]{
		{"mask without padding", func(a *args) { a.AttnMaskType = ops.CausalMask }, "attn_mask_type", "a padding mask with thd"},
		{"axes of K", func(a *args) { a.K = f32(1, 12, 2, 8) }, "K", "3 axes"},
		{"tokens of V", func(a *args) { a.V = f32(13, 2, 6) }, "K", "[13 2 8]"},
		{"shape of O", func(a *args) { a.O = f32(9, 4, 8) }, "O", "[9 4 6]"},
		{"length of stats", func(a *args) { a.Stats = f32(2, 4, 9) }, "stats", "36 elements (one a token and head of Q)"},
		{"other batch", func(a *args) { a.CuSeqlensKV = i32(0, 5, 8, 11) }, "cu_seqlens_kv", "3 elements"},
		{"bias", func(a *args) { a.BiasType, a.Bias = ops.PostScaleBias, f32(1, 1, 1, 1) }, "bias_type", "no_bias or alibi with thd"},
		{"gaps of queries only", func(a *args) { a.CuSeqlensKVPadded = nil }, "cu_seqlens_kv_padded", "a tensor"},
		{"gaps of keys only", func(a *args) { a.CuSeqlensQPadded = nil }, "cu_seqlens_q_padded", "a tensor"},
		{"gaps too short", func(a *args) { a.CuSeqlensQPadded = i32(0, 4, 9) }, "cu_seqlens_q_padded", "enough tokens for each sequence"},
		{"gaps beyond the tokens", func(a *args) { a.CuSeqlensQPadded = i32(0, 6, 10) }, "cu_seqlens_q_padded", "at most 9 tokens"},
		{"number of gaps", func(a *args) { a.CuSeqlensQPadded = i32(0, 9) }, "cu_seqlens_q_padded", "3 elements"},
		{"falling gaps", func(a *args) { a.CuSeqlensQPadded = i32(0, 6, 4) }, "cu_seqlens_q_padded", "values that do not fall"},
		{"beyond the tokens", func(a *args) {
			a.CuSeqlensQPadded, a.CuSeqlensKVPadded, a.CuSeqlensKV = nil, nil, i32(0, 5, 13)
		}, "cu_seqlens_kv", "at most 12 tokens"},
	})
	testAccepted(t, ops.FusedAttnFwd, packed, map[string]func(a *args){
		"without gaps": func(a *args) { a.CuSeqlensQPadded, a.CuSeqlensKVPadded = nil, nil },
		"no sequence": func(a *args) {
			a.CuSeqlensQPadded, a.CuSeqlensKVPadded, a.CuSeqlensQ, a.CuSeqlensKV = nil, nil, i32(0), i32(0)
		},
	})
	testOperands(t, ops.FusedAttnFwd, packed(), access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessWrite, "stats": opregistry.AccessWrite,
		"cu_seqlens_q": opregistry.AccessRead, "cu_seqlens_kv": opregistry.AccessRead, "cu_seqlens_q_padded": opregistry.AccessRead, "cu_seqlens_kv_padded": opregistry.AccessRead,
	})
	assert.Equal(t, ops.Sequence{FirstQ: 6, LenQ: 3, FirstKV: 5, LenKV: 6}, packed().Sequence(1))
	assert.Equal(t, ops.Sequence{LenQ: 3, LenKV: 7}, good().Sequence(1))
	assert.Equal(t, ops.Sequence{LenQ: 5, LenKV: 7}, goodAttnFwd().Sequence(1))
}

func TestAttnEnums(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "pre_scale_bias", ops.PreScaleBias.String())
	assert.Equal(t, "bias_type(4)", ops.BiasType(4).String())
	assert.Equal(t, "off-by-one", ops.OffByOneSoftmax.String())
	assert.Equal(t, "softmax_type(3)", ops.SoftmaxType(3).String())
	assert.Equal(t, "padding_causal_bottom_right", ops.PaddingCausalBottomRightMask.String())
	assert.Equal(t, "arbitrary", ops.ArbitraryMask.String())
	assert.False(t, ops.OptionalBool{}.Or(false))
	assert.True(t, ops.OptionalBool{}.Or(true))
	assert.False(t, ops.Bool(false).Or(true))
	l, r := ops.WindowSize{}.Bounds()
	assert.Equal(t, []int{-1, -1}, []int{l, r})
	l, r = ops.Window(0, 3).Bounds()
	assert.Equal(t, []int{0, 3}, []int{l, r})
}

// The slopes of eight heads are those of the paper, 2⁻¹ to 2⁻⁸; of twelve, the
// further ones lie between them.
func TestDefaultAlibiSlopes(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []float32{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}, ops.DefaultAlibiSlopes(8))
	assert.InDeltaSlice(t, []float32{0.70710678, 0.35355339, 0.1767767, 0.08838835}, ops.DefaultAlibiSlopes(12)[8:], 1e-7)
	assert.Empty(t, ops.DefaultAlibiSlopes(0))
}

func TestAttentionBackends(t *testing.T) {
	type fused = ops.GetFusedAttnBackendArgs
	testValidation(t, ops.GetFusedAttnBackend, func() fused { return fused{Result: new(ops.FusedAttnBackend)} }, []refusal[fused]{
		{"no result", func(a *fused) { a.Result = nil }, "result", "where the answer goes"},
	})
	type all = ops.GetAttentionBackendArgs
	testValidation(t, ops.GetAttentionBackend, func() all { return all{Result: new(ops.AttentionBackends)} }, []refusal[all]{
		{"no result", func(a *all) { a.Result = nil }, "result", "where the answer goes"},
	})
}
