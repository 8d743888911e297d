package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func goodAttnFwd() ops.FusedAttnFwdArgs {
	return ops.FusedAttnFwdArgs{
		Q: f32(2, 5, 4, 8), K: f32(2, 7, 2, 8), V: f32(2, 7, 2, 6), O: f32(2, 5, 4, 6), Stats: f32(2, 4, 5, 1),
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalMask, Saved: new(opregistry.Saved),
	}
}

func TestFusedAttnFwd(t *testing.T) {
	type args = ops.FusedAttnFwdArgs
	testValidation(t, ops.FusedAttnFwd, goodAttnFwd, []refusal[args]{
		{"no format", func(a *args) { a.QKVFormat = 0 }, "qkv_format", "sbhd, bshd or thd"},
		{"unknown format", func(a *args) { a.QKVFormat = 9 }, "qkv_format", "sbhd, bshd or thd"},
		{"packed format", func(a *args) { a.QKVFormat = ops.THD }, "Q", "3 axes"},
		{"no mask type", func(a *args) { a.AttnMaskType = 0 }, "attn_mask_type", "a mask type from no_mask to arbitrary"},
		{"unknown mask type", func(a *args) { a.AttnMaskType = 9 }, "attn_mask_type", "a mask type from no_mask to arbitrary"},
		{"no Q", func(a *args) { a.Q = nil }, "Q", "a tensor"},
		{"no K", func(a *args) { a.K = nil }, "K", "a tensor"},
		{"no V", func(a *args) { a.V = nil }, "V", "a tensor"},
		{"no O", func(a *args) { a.O = nil }, "O", "a tensor"},
		{"dtype of Q", func(a *args) { a.Q = of(tensor.U8, 2, 5, 4, 8) }, "Q", "dtype f32, bf16, f16 or f64"},
		{"axes of Q", func(a *args) { a.Q = f32(2, 5, 32) }, "Q", "4 axes"},
		{"axes of K", func(a *args) { a.K = f32(2, 7, 16) }, "K", "4 axes"},
		{"axes of V", func(a *args) { a.V = f32(2, 7, 12) }, "V", "4 axes"},
		{"axes of O", func(a *args) { a.O = f32(2, 5, 24) }, "O", "4 axes"},
		{"dtype of K", func(a *args) { a.K = of(tensor.F16, 2, 7, 2, 8) }, "K", "the dtype of Q, f32"},
		{"dtype of V", func(a *args) { a.V = of(tensor.F16, 2, 7, 2, 6) }, "V", "the dtype of Q, f32"},
		{"dtype of O", func(a *args) { a.O = of(tensor.F16, 2, 5, 4, 6) }, "O", "the dtype of Q, f32"},
		{"batch of K", func(a *args) { a.K = f32(3, 7, 2, 8) }, "K", "[2 7 2 8]"},
		{"length of K", func(a *args) { a.K = f32(2, 6, 2, 8) }, "K", "[2 7 2 8]"},
		{"heads of K", func(a *args) { a.K = f32(2, 7, 4, 8) }, "K", "[2 7 2 8]"},
		{"head size of K", func(a *args) { a.K = f32(2, 7, 2, 6) }, "K", "[2 7 2 8]"},
		{"batch of V", func(a *args) { a.V = f32(1, 7, 2, 6) }, "V", "[2 7 2 6]"},
		{"shape of O", func(a *args) { a.O = f32(2, 5, 4, 8) }, "O", "[2 5 4 6]"},
		{"other format", func(a *args) { a.QKVFormat = ops.SBHD }, "K", "[2 5 2 8]"},
		{"groups do not divide", func(a *args) { a.K, a.V = f32(2, 7, 3, 8), f32(2, 7, 3, 6) }, "K", "a number of heads that divides the 4 of Q"},
		{"no groups", func(a *args) { a.K, a.V = f32(2, 7, 0, 8), f32(2, 7, 0, 6) }, "K", "a number of heads that divides the 4 of Q"},
		{"heads without elements", func(a *args) { a.Q, a.K = f32(2, 5, 4, 0), f32(2, 7, 2, 0) }, "Q", "heads of at least one element"},
		{"no stats", func(a *args) { a.Stats = nil }, "stats", "a tensor"},
		{"dtype of stats", func(a *args) { a.Stats = of(tensor.F64, 2, 4, 5, 1) }, "stats", "dtype f32"},
		{"length of stats", func(a *args) { a.Stats = f32(2, 4, 7) }, "stats", "40 elements"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
		{"O over Q", func(a *args) { a.Q = a.O; a.K = f32(2, 7, 2, 6) }, "O", "memory apart from Q"},
		{"O over K", func(a *args) { a.K = view(a.Q, 2, 7, 2, 8); a.O = view(a.K, 2, 5, 4, 6); a.Q = f32(2, 5, 4, 8) }, "O", "memory apart from K"},
		{"O over V", func(a *args) { a.V = view(a.O, 2, 7, 2, 6) }, "O", "memory apart from V"},
		{"stats over O", func(a *args) { a.Stats = flat(a.O, 40) }, "stats", "memory apart from O"},
		{"stats over Q", func(a *args) { a.Stats = flat(a.Q, 40) }, "stats", "memory apart from Q"},
		{"stats over K", func(a *args) { a.Stats = flat(a.K, 40) }, "stats", "memory apart from K"},
		{"stats over V", func(a *args) { a.Stats = flat(a.V, 40) }, "stats", "memory apart from V"},
		{"dtype of max_logit", func(a *args) { a.MaxLogit = of(tensor.F16, 4) }, "max_logit", "dtype f32"},
		{"length of max_logit", func(a *args) { a.MaxLogit = f32(2, 4) }, "max_logit", "4 elements"},
		{"max_logit over stats", func(a *args) { a.MaxLogit = flat(a.Stats, 4) }, "max_logit", "memory apart from stats"},
		{"max_logit over Q", func(a *args) { a.MaxLogit = flat(a.Q, 4) }, "max_logit", "memory apart from Q"},
	})
	testAccepted(t, ops.FusedAttnFwd, goodAttnFwd, map[string]func(a *args){
		"K is Q": func(a *args) { a.K = a.Q; a.V = f32(2, 5, 4, 6) },
		"sbhd": func(a *args) {
			a.QKVFormat = ops.SBHD
			a.Q, a.K, a.V, a.O = f32(5, 2, 4, 8), f32(7, 2, 2, 8), f32(7, 2, 2, 6), f32(5, 2, 4, 6)
		},
		"no keys": func(a *args) { a.K, a.V = f32(2, 0, 2, 8), f32(2, 0, 2, 6) },
		"no batch": func(a *args) {
			a.Q, a.K, a.V, a.O, a.Stats = f32(0, 5, 4, 8), f32(0, 7, 2, 8), f32(0, 7, 2, 6), f32(0, 5, 4, 6), f32(0)
		},
	})
	testOperands(t, ops.FusedAttnFwd, goodAttnFwd(), access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessWrite, "stats": opregistry.AccessWrite,
	})
}

func TestFusedAttnBwd(t *testing.T) {
	type args = ops.FusedAttnBwdArgs
	good := func() args {
		f := goodAttnFwd()
		return args{
			Q: f.Q, K: f.K, V: f.V, O: f.O, DO: f32(2, 5, 4, 6), Stats: f.Stats,
			DQ: f32(2, 5, 4, 8), DK: f32(2, 7, 2, 8), DV: f32(2, 7, 2, 6),
			QKVFormat: f.QKVFormat, AttnMaskType: f.AttnMaskType, Saved: f.Saved,
		}
	}
	refusals := []refusal[args]{
		{"what forward refuses", func(a *args) { a.QKVFormat = 0 }, "qkv_format", "sbhd, bshd or thd"},
		{"shape of K", func(a *args) { a.K = f32(2, 7, 2, 6) }, "K", "[2 7 2 8]"},
		{"no stats", func(a *args) { a.Stats = nil }, "stats", "a tensor"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
		{"no dO", func(a *args) { a.DO = nil }, "dO", "a tensor"},
		{"dtype of dO", func(a *args) { a.DO = of(tensor.F16, 2, 5, 4, 6) }, "dO", "the dtype of O, f32"},
		{"shape of dO", func(a *args) { a.DO = f32(2, 5, 4, 8) }, "dO", "the shape of O, [2 5 4 6]"},
		{"no dQ", func(a *args) { a.DQ = nil }, "dQ", "a tensor"},
		{"shape of dQ", func(a *args) { a.DQ = f32(2, 5, 4, 6) }, "dQ", "the shape of Q, [2 5 4 8]"},
		{"no dK", func(a *args) { a.DK = nil }, "dK", "a tensor"},
		{"shape of dK", func(a *args) { a.DK = f32(2, 5, 4, 8) }, "dK", "the shape of K, [2 7 2 8]"},
		{"no dV", func(a *args) { a.DV = nil }, "dV", "a tensor"},
		{"dtype of dV", func(a *args) { a.DV = of(tensor.I32, 2, 7, 2, 6) }, "dV", "dtype f32, bf16, f16 or f64"},
		{"dQ over dK", func(a *args) { a.DK = view(a.DQ, 2, 7, 2, 8) }, "dQ", "memory apart from dK"},
		{"dQ over dV", func(a *args) { a.DV = view(a.DQ, 2, 7, 2, 6) }, "dQ", "memory apart from dV"},
		{"dK over dV", func(a *args) { a.DV = view(a.DK, 2, 7, 2, 6) }, "dK", "memory apart from dV"},
	}
	reads := map[string]func(a *args) *tensor.Tensor{
		"Q": func(a *args) *tensor.Tensor { return a.Q }, "K": func(a *args) *tensor.Tensor { return a.K },
		"V": func(a *args) *tensor.Tensor { return a.V }, "O": func(a *args) *tensor.Tensor { return a.O },
		"dO": func(a *args) *tensor.Tensor { return a.DO }, "stats": func(a *args) *tensor.Tensor { return a.Stats },
	}
	for name, read := range reads {
		refusals = append(refusals,
			refusal[args]{"dQ over " + name, func(a *args) { a.DQ = over(read(a), a.DQ.Shape()) }, "dQ", "memory apart from " + name},
			refusal[args]{"dK over " + name, func(a *args) { a.DK = over(read(a), a.DK.Shape()) }, "dK", "memory apart from " + name},
			refusal[args]{"dV over " + name, func(a *args) { a.DV = over(read(a), a.DV.Shape()) }, "dV", "memory apart from " + name},
		)
	}
	testValidation(t, ops.FusedAttnBwd, good, refusals)
	withOptions := func() args {
		a := good()
		a.BiasType, a.Bias, a.DBias = ops.PostScaleBias, f32(1, 4, 5, 7), f32(1, 4, 5, 7)
		a.SoftmaxType, a.SoftmaxOffset, a.DSoftmaxOffset = ops.LearnableSoftmax, f32(4), f32(1, 4, 1, 1)
		return a
	}
	testValidation(t, ops.FusedAttnBwd, withOptions, []refusal[args]{
		{"shape of dbias", func(a *args) { a.DBias = f32(2, 4, 5, 7) }, "dbias", "the shape of bias"},
		{"dtype of dbias", func(a *args) { a.DBias = of(tensor.F64, 1, 4, 5, 7) }, "dbias", "the dtype of bias"},
		{"dbias without bias", func(a *args) { a.BiasType, a.Bias = ops.NoBias, nil }, "dbias", "nil without bias"},
		{"dbias over bias", func(a *args) { a.DBias = a.Bias }, "dbias", "memory apart from bias"},
		{"dQ over bias", func(a *args) { a.DQ = over(a.Bias, a.DQ.Shape()) }, "dQ", "memory apart from bias"},
		{"dbias over dQ", func(a *args) { a.DBias = over(a.DQ, a.DBias.Shape()) }, "dQ", "memory apart from dbias"},
		{"dsoftmax_offset without softmax_offset", func(a *args) { a.SoftmaxType, a.SoftmaxOffset = ops.VanillaSoftmax, nil }, "dsoftmax_offset", "nil without softmax_offset"},
		{"length of dsoftmax_offset", func(a *args) { a.DSoftmaxOffset = f32(5) }, "dsoftmax_offset", "4 elements"},
		{"dtype of dsoftmax_offset", func(a *args) { a.DSoftmaxOffset = of(tensor.BF16, 4) }, "dsoftmax_offset", "dtype f32"},
		{"dsoftmax_offset over softmax_offset", func(a *args) { a.DSoftmaxOffset = a.SoftmaxOffset }, "dsoftmax_offset", "memory apart from softmax_offset"},
	})
	testAccepted(t, ops.FusedAttnBwd, withOptions, map[string]func(a *args){
		"gradients not wanted": func(a *args) { a.DBias, a.DSoftmaxOffset = nil, nil },
	})
	testOperands(t, ops.FusedAttnBwd, good(), access{
		"Q": opregistry.AccessRead, "K": opregistry.AccessRead, "V": opregistry.AccessRead, "O": opregistry.AccessRead, "dO": opregistry.AccessRead, "stats": opregistry.AccessRead,
		"dQ": opregistry.AccessWrite, "dK": opregistry.AccessWrite, "dV": opregistry.AccessWrite,
	})
	fwd := good().Fwd()
	assert.Equal(t, ops.AttnDims{Batch: 2, SeqQ: 5, SeqKV: 7, Heads: 4, Groups: 2, DimQK: 8, DimV: 6}, fwd.Dims())
}

// over returns a tensor of this shape all of whose elements are x's first one.
func over(x *tensor.Tensor, shape tensor.Shape) *tensor.Tensor {
	v, err := x.AsStrided(shape, make([]int, len(shape)), x.Offset())
	if err != nil {
		panic(err)
	}
	return v
}
