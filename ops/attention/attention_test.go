package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func goodAttnFwd() attention.FusedAttnFwdArgs {
	return attention.FusedAttnFwdArgs{
		Q: checktest.F32(2, 5, 4, 8), K: checktest.F32(2, 7, 2, 8), V: checktest.F32(2, 7, 2, 6), O: checktest.F32(2, 5, 4, 6), Stats: checktest.F32(2, 4, 5, 1),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalMask, Saved: new(opregistry.Saved),
	}
}

func TestFusedAttnFwd(t *testing.T) {
	type args = attention.FusedAttnFwdArgs
	checktest.Validation(t, attention.FusedAttnFwd, goodAttnFwd, []checktest.Refusal[args]{
		{Name: "no format", Edit: func(a *args) { a.QKVFormat = 0 }, Operand: "qkv_format", Want: "sbhd, bshd or thd"},
		{Name: "unknown format", Edit: func(a *args) { a.QKVFormat = 9 }, Operand: "qkv_format", Want: "sbhd, bshd or thd"},
		{Name: "packed format", Edit: func(a *args) { a.QKVFormat = attention.THD }, Operand: "Q", Want: "3 axes"},
		{Name: "no mask type", Edit: func(a *args) { a.AttnMaskType = 0 }, Operand: "attn_mask_type", Want: "a mask type from no_mask to arbitrary"},
		{Name: "unknown mask type", Edit: func(a *args) { a.AttnMaskType = 9 }, Operand: "attn_mask_type", Want: "a mask type from no_mask to arbitrary"},
		{Name: "no Q", Edit: func(a *args) { a.Q = nil }, Operand: "Q", Want: "a tensor"},
		{Name: "no K", Edit: func(a *args) { a.K = nil }, Operand: "K", Want: "a tensor"},
		{Name: "no V", Edit: func(a *args) { a.V = nil }, Operand: "V", Want: "a tensor"},
		{Name: "no O", Edit: func(a *args) { a.O = nil }, Operand: "O", Want: "a tensor"},
		{Name: "dtype of Q", Edit: func(a *args) { a.Q = checktest.Zeros(tensor.U8, 2, 5, 4, 8) }, Operand: "Q", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "axes of Q", Edit: func(a *args) { a.Q = checktest.F32(2, 5, 32) }, Operand: "Q", Want: "4 axes"},
		{Name: "axes of K", Edit: func(a *args) { a.K = checktest.F32(2, 7, 16) }, Operand: "K", Want: "4 axes"},
		{Name: "axes of V", Edit: func(a *args) { a.V = checktest.F32(2, 7, 12) }, Operand: "V", Want: "4 axes"},
		{Name: "axes of O", Edit: func(a *args) { a.O = checktest.F32(2, 5, 24) }, Operand: "O", Want: "4 axes"},
		{Name: "dtype of K", Edit: func(a *args) { a.K = checktest.Zeros(tensor.F16, 2, 7, 2, 8) }, Operand: "K", Want: "the dtype of Q, f32"},
		{Name: "dtype of V", Edit: func(a *args) { a.V = checktest.Zeros(tensor.F16, 2, 7, 2, 6) }, Operand: "V", Want: "the dtype of Q, f32"},
		{Name: "dtype of O", Edit: func(a *args) { a.O = checktest.Zeros(tensor.F16, 2, 5, 4, 6) }, Operand: "O", Want: "the dtype of Q, f32"},
		{Name: "batch of K", Edit: func(a *args) { a.K = checktest.F32(3, 7, 2, 8) }, Operand: "K", Want: "[2 7 2 8]"},
		{Name: "length of K", Edit: func(a *args) { a.K = checktest.F32(2, 6, 2, 8) }, Operand: "K", Want: "[2 7 2 8]"},
		{Name: "heads of K", Edit: func(a *args) { a.K = checktest.F32(2, 7, 4, 8) }, Operand: "K", Want: "[2 7 2 8]"},
		{Name: "head size of K", Edit: func(a *args) { a.K = checktest.F32(2, 7, 2, 6) }, Operand: "K", Want: "[2 7 2 8]"},
		{Name: "batch of V", Edit: func(a *args) { a.V = checktest.F32(1, 7, 2, 6) }, Operand: "V", Want: "[2 7 2 6]"},
		{Name: "shape of O", Edit: func(a *args) { a.O = checktest.F32(2, 5, 4, 8) }, Operand: "O", Want: "[2 5 4 6]"},
		{Name: "other format", Edit: func(a *args) { a.QKVFormat = attention.SBHD }, Operand: "K", Want: "[2 5 2 8]"},
		{Name: "groups do not divide", Edit: func(a *args) { a.K, a.V = checktest.F32(2, 7, 3, 8), checktest.F32(2, 7, 3, 6) }, Operand: "K", Want: "a number of heads that divides the 4 of Q"},
		{Name: "no groups", Edit: func(a *args) { a.K, a.V = checktest.F32(2, 7, 0, 8), checktest.F32(2, 7, 0, 6) }, Operand: "K", Want: "a number of heads that divides the 4 of Q"},
		{Name: "heads without elements", Edit: func(a *args) { a.Q, a.K = checktest.F32(2, 5, 4, 0), checktest.F32(2, 7, 2, 0) }, Operand: "Q", Want: "heads of at least one element"},
		{Name: "no stats", Edit: func(a *args) { a.Stats = nil }, Operand: "stats", Want: "a tensor"},
		{Name: "dtype of stats", Edit: func(a *args) { a.Stats = checktest.Zeros(tensor.F64, 2, 4, 5, 1) }, Operand: "stats", Want: "dtype f32"},
		{Name: "length of stats", Edit: func(a *args) { a.Stats = checktest.F32(2, 4, 7) }, Operand: "stats", Want: "40 elements"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
		{Name: "O over Q", Edit: func(a *args) { a.Q = a.O; a.K = checktest.F32(2, 7, 2, 6) }, Operand: "O", Want: "memory apart from Q"},
		{Name: "O over K", Edit: func(a *args) {
			a.K = checktest.View(a.Q, 2, 7, 2, 8)
			a.O = checktest.View(a.K, 2, 5, 4, 6)
			a.Q = checktest.F32(2, 5, 4, 8)
		}, Operand: "O", Want: "memory apart from K"},
		{Name: "O over V", Edit: func(a *args) { a.V = checktest.View(a.O, 2, 7, 2, 6) }, Operand: "O", Want: "memory apart from V"},
		{Name: "stats over O", Edit: func(a *args) { a.Stats = checktest.Flat(a.O, 40) }, Operand: "stats", Want: "memory apart from O"},
		{Name: "stats over Q", Edit: func(a *args) { a.Stats = checktest.Flat(a.Q, 40) }, Operand: "stats", Want: "memory apart from Q"},
		{Name: "stats over K", Edit: func(a *args) { a.Stats = checktest.Flat(a.K, 40) }, Operand: "stats", Want: "memory apart from K"},
		{Name: "stats over V", Edit: func(a *args) { a.Stats = checktest.Flat(a.V, 40) }, Operand: "stats", Want: "memory apart from V"},
		{Name: "dtype of max_logit", Edit: func(a *args) { a.MaxLogit = checktest.Zeros(tensor.F16, 4) }, Operand: "max_logit", Want: "dtype f32"},
		{Name: "length of max_logit", Edit: func(a *args) { a.MaxLogit = checktest.F32(2, 4) }, Operand: "max_logit", Want: "4 elements"},
		{Name: "max_logit over stats", Edit: func(a *args) { a.MaxLogit = checktest.Flat(a.Stats, 4) }, Operand: "max_logit", Want: "memory apart from stats"},
		{Name: "max_logit over Q", Edit: func(a *args) { a.MaxLogit = checktest.Flat(a.Q, 4) }, Operand: "max_logit", Want: "memory apart from Q"},
	})
	checktest.Accepted(t, attention.FusedAttnFwd, goodAttnFwd, map[string]func(a *args){
		"K is Q": func(a *args) { a.K = a.Q; a.V = checktest.F32(2, 5, 4, 6) },
		"sbhd": func(a *args) {
			a.QKVFormat = attention.SBHD
			a.Q, a.K, a.V, a.O = checktest.F32(5, 2, 4, 8), checktest.F32(7, 2, 2, 8), checktest.F32(7, 2, 2, 6), checktest.F32(5, 2, 4, 6)
		},
		"no keys": func(a *args) { a.K, a.V = checktest.F32(2, 0, 2, 8), checktest.F32(2, 0, 2, 6) },
		"no batch": func(a *args) {
			a.Q, a.K, a.V, a.O, a.Stats = checktest.F32(0, 5, 4, 8), checktest.F32(0, 7, 2, 8), checktest.F32(0, 7, 2, 6), checktest.F32(0, 5, 4, 6), checktest.F32(0)
		},
	})
	checktest.Operands(t, attention.FusedAttnFwd, goodAttnFwd(), checktest.Access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessWrite, "stats": opregistry.AccessWrite,
	})
}

func TestFusedAttnBwd(t *testing.T) {
	type args = attention.FusedAttnBwdArgs
	good := func() args {
		f := goodAttnFwd()
		return args{
			Q: f.Q, K: f.K, V: f.V, O: f.O, DO: checktest.F32(2, 5, 4, 6), Stats: f.Stats,
			DQ: checktest.F32(2, 5, 4, 8), DK: checktest.F32(2, 7, 2, 8), DV: checktest.F32(2, 7, 2, 6),
			QKVFormat: f.QKVFormat, AttnMaskType: f.AttnMaskType, Saved: f.Saved,
		}
	}
	refusals := []checktest.Refusal[args]{
		{Name: "what forward refuses", Edit: func(a *args) { a.QKVFormat = 0 }, Operand: "qkv_format", Want: "sbhd, bshd or thd"},
		{Name: "shape of K", Edit: func(a *args) { a.K = checktest.F32(2, 7, 2, 6) }, Operand: "K", Want: "[2 7 2 8]"},
		{Name: "no stats", Edit: func(a *args) { a.Stats = nil }, Operand: "stats", Want: "a tensor"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
		{Name: "no dO", Edit: func(a *args) { a.DO = nil }, Operand: "dO", Want: "a tensor"},
		{Name: "dtype of dO", Edit: func(a *args) { a.DO = checktest.Zeros(tensor.F16, 2, 5, 4, 6) }, Operand: "dO", Want: "the dtype of O, f32"},
		{Name: "shape of dO", Edit: func(a *args) { a.DO = checktest.F32(2, 5, 4, 8) }, Operand: "dO", Want: "the shape of O, [2 5 4 6]"},
		{Name: "no dQ", Edit: func(a *args) { a.DQ = nil }, Operand: "dQ", Want: "a tensor"},
		{Name: "shape of dQ", Edit: func(a *args) { a.DQ = checktest.F32(2, 5, 4, 6) }, Operand: "dQ", Want: "the shape of Q, [2 5 4 8]"},
		{Name: "no dK", Edit: func(a *args) { a.DK = nil }, Operand: "dK", Want: "a tensor"},
		{Name: "shape of dK", Edit: func(a *args) { a.DK = checktest.F32(2, 5, 4, 8) }, Operand: "dK", Want: "the shape of K, [2 7 2 8]"},
		{Name: "no dV", Edit: func(a *args) { a.DV = nil }, Operand: "dV", Want: "a tensor"},
		{Name: "dtype of dV", Edit: func(a *args) { a.DV = checktest.Zeros(tensor.I32, 2, 7, 2, 6) }, Operand: "dV", Want: "the dtype of V, f32"},
		{Name: "dQ over dK", Edit: func(a *args) { a.DK = checktest.View(a.DQ, 2, 7, 2, 8) }, Operand: "dK", Want: "memory apart from dQ"},
		{Name: "dQ over dV", Edit: func(a *args) { a.DV = checktest.View(a.DQ, 2, 7, 2, 6) }, Operand: "dV", Want: "memory apart from dQ"},
		{Name: "dK over dV", Edit: func(a *args) { a.DV = checktest.View(a.DK, 2, 7, 2, 6) }, Operand: "dV", Want: "memory apart from dK"},
	}
	reads := map[string]func(a *args) *tensor.Tensor{
		"Q": func(a *args) *tensor.Tensor { return a.Q }, "K": func(a *args) *tensor.Tensor { return a.K },
		"V": func(a *args) *tensor.Tensor { return a.V }, "O": func(a *args) *tensor.Tensor { return a.O },
		"dO": func(a *args) *tensor.Tensor { return a.DO }, "stats": func(a *args) *tensor.Tensor { return a.Stats },
	}
	for name, read := range reads {
		refusals = append(refusals,
			checktest.Refusal[args]{Name: "dQ over " + name, Edit: func(a *args) { a.DQ = over(read(a), a.DQ.Shape()) }, Operand: "dQ", Want: "memory apart from " + name},
			checktest.Refusal[args]{Name: "dK over " + name, Edit: func(a *args) { a.DK = over(read(a), a.DK.Shape()) }, Operand: "dK", Want: "memory apart from " + name},
			checktest.Refusal[args]{Name: "dV over " + name, Edit: func(a *args) { a.DV = over(read(a), a.DV.Shape()) }, Operand: "dV", Want: "memory apart from " + name},
		)
	}
	checktest.Validation(t, attention.FusedAttnBwd, good, refusals)
	withOptions := func() args {
		a := good()
		a.BiasType, a.Bias, a.DBias = attention.PostScaleBias, checktest.F32(1, 4, 5, 7), checktest.F32(1, 4, 5, 7)
		a.SoftmaxType, a.SoftmaxOffset, a.DSoftmaxOffset = attention.LearnableSoftmax, checktest.F32(4), checktest.F32(1, 4, 1, 1)
		return a
	}
	checktest.Validation(t, attention.FusedAttnBwd, withOptions, []checktest.Refusal[args]{
		{Name: "shape of dbias", Edit: func(a *args) { a.DBias = checktest.F32(2, 4, 5, 7) }, Operand: "dbias", Want: "the shape of bias"},
		{Name: "dtype of dbias", Edit: func(a *args) { a.DBias = checktest.Zeros(tensor.F64, 1, 4, 5, 7) }, Operand: "dbias", Want: "the dtype of bias"},
		{Name: "dbias without bias", Edit: func(a *args) { a.BiasType, a.Bias = attention.NoBias, nil }, Operand: "dbias", Want: "nil without bias"},
		{Name: "dbias over bias", Edit: func(a *args) { a.DBias = a.Bias }, Operand: "dbias", Want: "memory apart from bias"},
		{Name: "dQ over bias", Edit: func(a *args) { a.DQ = over(a.Bias, a.DQ.Shape()) }, Operand: "dQ", Want: "memory apart from bias"},
		{Name: "dbias over dQ", Edit: func(a *args) { a.DBias = over(a.DQ, a.DBias.Shape()) }, Operand: "dbias", Want: "memory apart from dQ"},
		{Name: "dsoftmax_offset without softmax_offset", Edit: func(a *args) { a.SoftmaxType, a.SoftmaxOffset = attention.VanillaSoftmax, nil }, Operand: "dsoftmax_offset", Want: "nil without softmax_offset"},
		{Name: "length of dsoftmax_offset", Edit: func(a *args) { a.DSoftmaxOffset = checktest.F32(5) }, Operand: "dsoftmax_offset", Want: "4 elements"},
		{Name: "dtype of dsoftmax_offset", Edit: func(a *args) { a.DSoftmaxOffset = checktest.Zeros(tensor.BF16, 4) }, Operand: "dsoftmax_offset", Want: "dtype f32"},
		{Name: "dsoftmax_offset over softmax_offset", Edit: func(a *args) { a.DSoftmaxOffset = a.SoftmaxOffset }, Operand: "dsoftmax_offset", Want: "memory apart from softmax_offset"},
	})
	checktest.Accepted(t, attention.FusedAttnBwd, withOptions, map[string]func(a *args){
		"gradients not wanted": func(a *args) { a.DBias, a.DSoftmaxOffset = nil, nil },
	})
	checktest.Operands(t, attention.FusedAttnBwd, good(), checktest.Access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessRead, "dO": opregistry.AccessRead, "stats": opregistry.AccessRead,
		"dQ": opregistry.AccessWrite, "dK": opregistry.AccessWrite, "dV": opregistry.AccessWrite,
	})
	fwd := good().Fwd()
	assert.Equal(t, attention.AttnDims{Batch: 2, SeqQ: 5, SeqKV: 7, Heads: 4, Groups: 2, DimQK: 8, DimV: 6}, fwd.Dims())
}

// over returns a tensor of this shape all of whose elements are x's first one.
func over(x *tensor.Tensor, shape tensor.Shape) *tensor.Tensor {
	v, err := x.AsStrided(shape, make([]int, len(shape)), x.Offset())
	if err != nil {
		panic(err)
	}
	return v
}
