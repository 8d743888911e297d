package attention_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestFusedAttnOptions(t *testing.T) {
	type args = attention.FusedAttnFwdArgs
	flags := func(shape ...int) *tensor.Tensor { return checktest.Zeros(tensor.Bool, shape...) }
	checktest.Validation(t, attention.FusedAttnFwd, goodAttnFwd, []checktest.Refusal[args]{
		{Name: "window before the diagonal", Edit: func(a *args) { a.WindowSize = attention.Window(-2, 0) }, Operand: "window_size", Want: "sizes >= -1"},
		{Name: "window after the diagonal", Edit: func(a *args) { a.WindowSize = attention.Window(0, -2) }, Operand: "window_size", Want: "sizes >= -1"},
		{Name: "diagonal of another mask", Edit: func(a *args) { a.BottomRightDiagonal = opregistry.Bool(true) }, Operand: "bottom_right_diagonal", Want: "that of causal"},
		{Name: "diagonal of the mask", Edit: func(a *args) {
			a.AttnMaskType, a.BottomRightDiagonal = attention.CausalBottomRightMask, opregistry.Bool(false)
		}, Operand: "bottom_right_diagonal", Want: "that of causal_bottom_right"},
		{Name: "no attention_mask", Edit: func(a *args) { a.AttnMaskType = attention.ArbitraryMask }, Operand: "attention_mask", Want: "a tensor"},
		{Name: "attention_mask with causal", Edit: func(a *args) { a.AttentionMask = flags(1, 1, 5, 7) }, Operand: "attention_mask", Want: "nil unless attn_mask_type is arbitrary"},
		{Name: "dtype of attention_mask", Edit: func(a *args) { a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, checktest.F32(1, 1, 5, 7) }, Operand: "attention_mask", Want: "dtype bool"},
		{Name: "axes of attention_mask", Edit: func(a *args) { a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, flags(5, 7) }, Operand: "attention_mask", Want: "4 axes"},
		{Name: "keys of attention_mask", Edit: func(a *args) { a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, flags(2, 1, 5, 5) }, Operand: "attention_mask", Want: "[2 4 5 7] or 1"},
		{Name: "bias without a type", Edit: func(a *args) { a.Bias = checktest.F32(1, 4, 5, 7) }, Operand: "bias", Want: "nil with no_bias"},
		{Name: "bias with alibi", Edit: func(a *args) { a.BiasType, a.Bias = attention.ALiBi, checktest.F32(1, 4, 5, 7) }, Operand: "bias", Want: "nil with alibi"},
		{Name: "no bias", Edit: func(a *args) { a.BiasType = attention.PreScaleBias }, Operand: "bias", Want: "a tensor"},
		{Name: "dtype of bias", Edit: func(a *args) { a.BiasType, a.Bias = attention.PreScaleBias, checktest.Zeros(tensor.BF16, 1, 4, 5, 7) }, Operand: "bias", Want: "the dtype of Q"},
		{Name: "shape of bias", Edit: func(a *args) { a.BiasType, a.Bias = attention.PostScaleBias, checktest.F32(1, 2, 5, 7) }, Operand: "bias", Want: "[2 4 5 7] or 1"},
		{Name: "unknown bias type", Edit: func(a *args) { a.BiasType = 9 }, Operand: "bias_type", Want: "no_bias, pre_scale_bias"},
		{Name: "slopes without alibi", Edit: func(a *args) { a.AlibiSlopes = checktest.F32(4) }, Operand: "alibi_slopes", Want: "nil unless bias_type is alibi"},
		{Name: "shape of slopes", Edit: func(a *args) { a.BiasType, a.AlibiSlopes = attention.ALiBi, checktest.F32(2, 2) }, Operand: "alibi_slopes", Want: "[4] or [2 4]"},
		{Name: "dtype of slopes", Edit: func(a *args) { a.BiasType, a.AlibiSlopes = attention.ALiBi, checktest.Zeros(tensor.F64, 4) }, Operand: "alibi_slopes", Want: "dtype f32"},
		{Name: "unknown softmax type", Edit: func(a *args) { a.SoftmaxType = 9 }, Operand: "softmax_type", Want: "vanilla, off-by-one or learnable"},
		{Name: "no softmax_offset", Edit: func(a *args) { a.SoftmaxType = attention.LearnableSoftmax }, Operand: "softmax_offset", Want: "a tensor"},
		{Name: "softmax_offset of vanilla", Edit: func(a *args) { a.SoftmaxOffset = checktest.F32(4) }, Operand: "softmax_offset", Want: "nil unless softmax_type is learnable"},
		{Name: "length of softmax_offset", Edit: func(a *args) { a.SoftmaxType, a.SoftmaxOffset = attention.LearnableSoftmax, checktest.F32(2, 4) }, Operand: "softmax_offset", Want: "4 elements"},
		{Name: "negative dropout", Edit: func(a *args) { a.PDropout = -0.1 }, Operand: "p_dropout", Want: "a number in [0, 1)"},
		{Name: "dropout of everything", Edit: func(a *args) { a.PDropout = 1 }, Operand: "p_dropout", Want: "a number in [0, 1)"},
		{Name: "dropout nan", Edit: func(a *args) { a.PDropout = float32(math.NaN()) }, Operand: "p_dropout", Want: "a number in [0, 1)"},
		{Name: "lengths without padding", Edit: func(a *args) { a.CuSeqlensQ = checktest.I32(0, 3, 5) }, Operand: "cu_seqlens_q", Want: "nil unless attn_mask_type is one with padding"},
		{Name: "lengths of keys without padding", Edit: func(a *args) { a.CuSeqlensKV = checktest.I32(0, 3, 5) }, Operand: "cu_seqlens_kv", Want: "nil unless attn_mask_type is one with padding"},
		{Name: "gaps without thd", Edit: func(a *args) { a.CuSeqlensKVPadded = checktest.I32(0, 3, 5) }, Operand: "cu_seqlens_kv_padded", Want: "nil unless qkv_format is thd"},
		{Name: "O over bias", Edit: func(a *args) { a.BiasType, a.Bias = attention.PreScaleBias, over(a.O, tensor.Shape{1, 4, 5, 7}) }, Operand: "O", Want: "memory apart from bias"},
		{Name: "stats over slopes", Edit: func(a *args) { a.BiasType, a.AlibiSlopes = attention.ALiBi, checktest.Flat(a.Stats, 4) }, Operand: "stats", Want: "memory apart from alibi_slopes"},
	})
	checktest.Accepted(t, attention.FusedAttnFwd, goodAttnFwd, map[string]func(a *args){
		"mask of keys":    func(a *args) { a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, flags(2, 1, 1, 7) },
		"open window":     func(a *args) { a.WindowSize = attention.Window(-1, -1) },
		"slopes by batch": func(a *args) { a.BiasType, a.AlibiSlopes = attention.ALiBi, checktest.F32(2, 4) },
		"same diagonal":   func(a *args) { a.BottomRightDiagonal = opregistry.Bool(false) },
		"diagonal":        func(a *args) { a.AttnMaskType, a.BottomRightDiagonal = attention.NoMask, opregistry.Bool(true) },
	})
}

func TestFusedAttnLengths(t *testing.T) {
	type args = attention.FusedAttnFwdArgs
	good := func() args {
		a := goodAttnFwd()
		a.AttnMaskType, a.CuSeqlensQ, a.CuSeqlensKV = attention.PaddingMask, checktest.I32(0, 5, 8), checktest.I32(0, 0, 7)
		return a
	}
	checktest.Validation(t, attention.FusedAttnFwd, good, []checktest.Refusal[args]{
		{Name: "no lengths of queries", Edit: func(a *args) { a.CuSeqlensQ = nil }, Operand: "cu_seqlens_q", Want: "a tensor"},
		{Name: "no lengths of keys", Edit: func(a *args) { a.CuSeqlensKV = nil }, Operand: "cu_seqlens_kv", Want: "a tensor"},
		{Name: "dtype of lengths", Edit: func(a *args) { a.CuSeqlensQ = checktest.I64(0, 5, 8) }, Operand: "cu_seqlens_q", Want: "dtype i32"},
		{Name: "axes of lengths", Edit: func(a *args) { a.CuSeqlensQ = checktest.Zeros(tensor.I32, 1, 3) }, Operand: "cu_seqlens_q", Want: "1 axis"},
		{Name: "first length", Edit: func(a *args) { a.CuSeqlensQ = checktest.I32(1, 5, 8) }, Operand: "cu_seqlens_q", Want: "0 first"},
		{Name: "none at all", Edit: func(a *args) { a.CuSeqlensKV = checktest.I32() }, Operand: "cu_seqlens_kv", Want: "0 first"},
		{Name: "falling lengths", Edit: func(a *args) { a.CuSeqlensKV = checktest.I32(0, 5, 4) }, Operand: "cu_seqlens_kv", Want: "values that do not fall"},
		{Name: "too few", Edit: func(a *args) { a.CuSeqlensKV = checktest.I32(0, 5) }, Operand: "cu_seqlens_kv", Want: "3 elements"},
		{Name: "too long", Edit: func(a *args) { a.CuSeqlensQ = checktest.I32(0, 2, 8) }, Operand: "cu_seqlens", Want: "at most 5 queries and 7 keys"},
	})
	packed := func() args {
		return args{
			Q: checktest.F32(9, 4, 8), K: checktest.F32(12, 2, 8), V: checktest.F32(12, 2, 6), O: checktest.F32(9, 4, 6), Stats: checktest.F32(9, 4, 1),
			QKVFormat: attention.THD, AttnMaskType: attention.PaddingCausalMask, Saved: new(opregistry.Saved),
			AttnOptions: attention.AttnOptions{CuSeqlensQ: checktest.I32(0, 5, 8), CuSeqlensKV: checktest.I32(0, 5, 11), CuSeqlensQPadded: checktest.I32(0, 6, 9), CuSeqlensKVPadded: checktest.I32(0, 5, 12)},
		}
	}
	checktest.Validation(t, attention.FusedAttnFwd, packed, []checktest.Refusal[args]{
		{Name: "mask without padding", Edit: func(a *args) { a.AttnMaskType = attention.CausalMask }, Operand: "attn_mask_type", Want: "a padding mask with thd"},
		{Name: "axes of K", Edit: func(a *args) { a.K = checktest.F32(1, 12, 2, 8) }, Operand: "K", Want: "3 axes"},
		{Name: "tokens of V", Edit: func(a *args) { a.V = checktest.F32(13, 2, 6) }, Operand: "K", Want: "[13 2 8]"},
		{Name: "shape of O", Edit: func(a *args) { a.O = checktest.F32(9, 4, 8) }, Operand: "O", Want: "[9 4 6]"},
		{Name: "length of stats", Edit: func(a *args) { a.Stats = checktest.F32(2, 4, 9) }, Operand: "stats", Want: "36 elements (one per token and head of Q)"},
		{Name: "other batch", Edit: func(a *args) { a.CuSeqlensKV = checktest.I32(0, 5, 8, 11) }, Operand: "cu_seqlens_kv", Want: "3 elements"},
		{Name: "bias", Edit: func(a *args) { a.BiasType, a.Bias = attention.PostScaleBias, checktest.F32(1, 1, 1, 1) }, Operand: "bias_type", Want: "no_bias or alibi with thd"},
		{Name: "gaps of queries only", Edit: func(a *args) { a.CuSeqlensKVPadded = nil }, Operand: "cu_seqlens_kv_padded", Want: "a tensor"},
		{Name: "gaps of keys only", Edit: func(a *args) { a.CuSeqlensQPadded = nil }, Operand: "cu_seqlens_q_padded", Want: "a tensor"},
		{Name: "gaps too short", Edit: func(a *args) { a.CuSeqlensQPadded = checktest.I32(0, 4, 9) }, Operand: "cu_seqlens_q_padded", Want: "enough tokens for each sequence"},
		{Name: "gaps beyond the tokens", Edit: func(a *args) { a.CuSeqlensQPadded = checktest.I32(0, 6, 10) }, Operand: "cu_seqlens_q_padded", Want: "at most 9 tokens"},
		{Name: "number of gaps", Edit: func(a *args) { a.CuSeqlensQPadded = checktest.I32(0, 9) }, Operand: "cu_seqlens_q_padded", Want: "3 elements"},
		{Name: "falling gaps", Edit: func(a *args) { a.CuSeqlensQPadded = checktest.I32(0, 6, 4) }, Operand: "cu_seqlens_q_padded", Want: "values that do not fall"},
		{Name: "beyond the tokens", Edit: func(a *args) {
			a.CuSeqlensQPadded, a.CuSeqlensKVPadded, a.CuSeqlensKV = nil, nil, checktest.I32(0, 5, 13)
		}, Operand: "cu_seqlens_kv", Want: "at most 12 tokens"},
	})
	checktest.Accepted(t, attention.FusedAttnFwd, packed, map[string]func(a *args){
		"without gaps": func(a *args) { a.CuSeqlensQPadded, a.CuSeqlensKVPadded = nil, nil },
		"no sequence": func(a *args) {
			a.CuSeqlensQPadded, a.CuSeqlensKVPadded, a.CuSeqlensQ, a.CuSeqlensKV = nil, nil, checktest.I32(0), checktest.I32(0)
		},
	})
	checktest.Operands(t, attention.FusedAttnFwd, packed(), checktest.Access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessWrite, "stats": opregistry.AccessWrite,
		"cu_seqlens_q": opregistry.AccessRead, "cu_seqlens_kv": opregistry.AccessRead, "cu_seqlens_q_padded": opregistry.AccessRead, "cu_seqlens_kv_padded": opregistry.AccessRead,
	})
	for _, tt := range []struct {
		args attention.FusedAttnFwdArgs
		want attention.Sequence
	}{
		{packed(), attention.Sequence{FirstQ: 6, LenQ: 3, FirstKV: 5, LenKV: 6}},
		{good(), attention.Sequence{LenQ: 3, LenKV: 7}},
		{goodAttnFwd(), attention.Sequence{LenQ: 5, LenKV: 7}},
	} {
		assert.Equal(t, tt.want, tt.args.Sequence(1))
	}
}

func TestAttnEnums(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "pre_scale_bias", attention.PreScaleBias.String())
	assert.Equal(t, "bias_type(4)", attention.BiasType(4).String())
	assert.Equal(t, "off-by-one", attention.OffByOneSoftmax.String())
	assert.Equal(t, "softmax_type(3)", attention.SoftmaxType(3).String())
	assert.Equal(t, "padding_causal_bottom_right", attention.PaddingCausalBottomRightMask.String())
	assert.Equal(t, "arbitrary", attention.ArbitraryMask.String())
	assert.False(t, opregistry.OptionalBool{}.Or(false))
	assert.True(t, opregistry.OptionalBool{}.Or(true))
	assert.False(t, opregistry.Bool(false).Or(true))
	l, r := attention.WindowSize{}.Bounds()
	assert.Equal(t, []int{-1, -1}, []int{l, r})
	l, r = attention.Window(0, 3).Bounds()
	assert.Equal(t, []int{0, 3}, []int{l, r})
}

// The slopes of eight heads are those of the paper, 2⁻¹ to 2⁻⁸; of twelve, the
// further ones lie between them.
func TestDefaultAlibiSlopes(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []float32{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}, attention.DefaultAlibiSlopes(8))
	assert.InDeltaSlice(t, []float32{0.70710678, 0.35355339, 0.1767767, 0.08838835}, attention.DefaultAlibiSlopes(12)[8:], 1e-7)
	assert.Empty(t, attention.DefaultAlibiSlopes(0))
}
