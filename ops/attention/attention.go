package attention

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MaskType says which keys a query of an attention op sees.
type MaskType uint8

// The mask types. Positions i of a query and j of a key count from the beginning of their sequence.
// With the padding masks, cu_seqlens gives the lengths l_q and l_kv of each sequence; with the
// others, sequences have s_q and s_kv positions.
const (
	MaskUnspecified              MaskType = iota
	NoMask                                // every key
	CausalMask                            // key j for query i when j <= i
	CausalBottomRightMask                 // key j for query i when j <= i + s_kv − s_q
	PaddingMask                           // every key of the sequence
	PaddingCausalMask                     // key j for query i when j <= i
	PaddingCausalBottomRightMask          // key j for query i when j <= i + l_kv − l_q
	ArbitraryMask                         // where attention_mask is false
)

var maskTypeNames = [...]string{
	NoMask: "no_mask", CausalMask: "causal", CausalBottomRightMask: "causal_bottom_right",
	PaddingMask: "padding", PaddingCausalMask: "padding_causal",
	PaddingCausalBottomRightMask: "padding_causal_bottom_right", ArbitraryMask: "arbitrary",
}

// String returns the mask type in TransformerEngine's spelling.
func (m MaskType) String() string {
	if !m.valid() {
		return fmt.Sprintf("mask_type(%d)", uint8(m))
	}
	return maskTypeNames[m]
}

func (m MaskType) valid() bool { return m >= NoMask && m <= ArbitraryMask }

// Padding reports whether cu_seqlens gives the lengths of the sequences.
func (m MaskType) Padding() bool { return m >= PaddingMask && m <= PaddingCausalBottomRightMask }

// Causal reports whether queries see no key after their diagonal.
func (m MaskType) Causal() bool {
	return m == CausalMask || m == PaddingCausalMask || m.bottomRight()
}

func (m MaskType) bottomRight() bool {
	return m == CausalBottomRightMask || m == PaddingCausalBottomRightMask
}

// FusedAttnFwdArgs are the arguments of FusedAttnFwd. The shapes are those of BSHD; with SBHD the
// first two axes are exchanged, with THD they are one axis of the tokens of all sequences.
type FusedAttnFwdArgs struct {
	Q            *tensor.Tensor           `op:"0 Q read compute"`
	K            *tensor.Tensor           `op:"1 K read =Q"`
	V            *tensor.Tensor           `op:"2 V read =Q"`
	O            *tensor.Tensor           `op:"3 O write =Q"`
	Stats        *tensor.Tensor           `op:"4 stats write f32 masked"`
	MaxLogit     *tensor.Tensor           `op:"5 max_logit write f32 ?"`
	AttnScale    opregistry.OptionalFloat `op:"6 attn_scale"`
	QKVFormat    QKVFormat                `op:"7 qkv_format"`
	AttnMaskType MaskType                 `op:"8 attn_mask_type"`
	AttnOptions  `op:"9"`
	Saved        *opregistry.Saved
}

// FusedAttnFwd is scaled dot-product attention with grouped keys and values.
var FusedAttnFwd = opregistry.NewOp("fused_attn_fwd", opregistry.Schema[FusedAttnFwdArgs]{
	Doc: "scaled dot-product attention with grouped keys and values",
	Formula: `
		fused_attn_fwd is scaled dot-product attention with grouped keys and values:

		  S[b,h,i,j] = scale · Σ_d Q[b,i,h,d]·K[b,j,h·g/h_q,d], −∞ where hidden
		  Z[b,h,i]   = Σ_j exp(S[b,h,i,j])
		  P[b,h,i,j] = exp(S[b,h,i,j]) / Z[b,h,i]
		  O[b,i,h,:] = Σ_j P[b,h,i,j] · V[b,j,h·g/h_q,:]
		  stats      = ln Z      max_logit[h] = max S[·,h,·,·]

		Each head of K and V serves h/g consecutive heads of Q. The mask type or the window hides a
		key from a query. A query that sees no key gets O = 0 and stats = −∞, a head without a score
		gets max_logit = −∞. Rows of O and stats that belong to no sequence are set to 0 and −∞.

		The mask type says which keys j the query i of a sequence sees; l_q and l_kv are the lengths
		of the sequence, by cu_seqlens with the padding masks and s_q and s_kv with the others:

		  no_mask, padding                                  all
		  causal, padding_causal                            j <= i
		  causal_bottom_right, padding_causal_bottom_right  j <= i + l_kv − l_q
		  arbitrary                                         where attention_mask is false

		window_size (l, r) also hides all but the keys from l before to r after the diagonal, on which
		j = i, or with bottom_right_diagonal j = i + l_kv − l_q; −1 is no limit. bias_type changes S:

		  pre_scale_bias   scale · (Q·Kᵀ + bias)
		  post_scale_bias  scale · Q·Kᵀ + bias
		  alibi            scale · Q·Kᵀ − slope · |distance of the key from the diagonal|

		With softcap c, not 0, c·tanh(x/c) takes the place of x = scale · Q·Kᵀ, or with pre_scale_bias of
		x = S, before post_scale_bias or alibi is added (Gemma 2, arXiv:2408.00118).

		Without alibi_slopes, with n the largest power of two ≤ h, slope[k] is 2^(−8(k+1)/n) for k < n,
		then 2^(−4(2(k−n)+1)/n) (Press et al. 2022, arXiv:2108.12409). softmax_type changes Z:

		  off-by-one       Z + 1
		  learnable        Z + exp(softmax_offset[h])

		Dropout multiplies P by 1/(1−p_dropout) where it is kept and by 0 elsewhere. Probability
		n = ((b·h + head)·s_q + i)·s_kv + j is kept when a word of 32 bits is at least p_dropout·2³²:
		word n mod 4 of the Philox4x32-10 block with the key [rng_seed mod 2³², ⌊rng_seed/2³²⌋] and the
		counter [c mod 2³², ⌊c/2³²⌋, 0, 0], c = rng_offset + ⌊n/4⌋ mod 2⁶⁴.

		Strides are arbitrary; arithmetic is in f32 or better.

		This op is what TransformerEngine's get_flash_attention_class returns as a Python class; a
		class is not an op, so the catalogue has none of that name. The op has neither paged keys
		nor keys in another format than the queries. Source: TransformerEngine 2.14, fused_attn_fwd;
		Dao et al. 2022, arXiv:2205.14135, for the saved log-sum-exp.

		Arguments:

		  Q           [b, s_q, h, d_qk]
		  K           [b, s_kv, g, d_qk], g divides h
		  V           [b, s_kv, g, d_v]
		  O           [b, s_q, h, d_v]
		  stats       [b, h, s_q, 1], with THD [t_q, h, 1]: log of the softmax's denominator
		  max_logit   [h]: the largest score of each head, nil when not wanted
		  attn_scale  1/√d_qk when left out

		  attention_mask         true hides; [b, h, s_q, s_kv] or 1 for any of them; arbitrary only
		  cu_seqlens_q           [b+1]: the total length of the sequences before b; padding masks only
		  cu_seqlens_kv          [b+1]
		  cu_seqlens_q_padded    [b+1]: where each sequence begins in a THD tensor with gaps
		  cu_seqlens_kv_padded   [b+1], given when cu_seqlens_q_padded is
		  bottom_right_diagonal  when left out, whether the mask type is one of the bottom right
		  bias                   [b, h, s_q, s_kv] or 1 for any of them; not with THD
		  alibi_slopes           [h] or [b, h]; with alibi, may be left out
		  softmax_offset         h elements; with learnable
		  softcap                from 2⁻¹⁰⁰ to 2¹⁰⁰, or 0 for none

		Example:

		  Q=[[[[1]] [[2]]]] K=[[[[1]] [[0]]]] V=[[[[10]] [[20]]]] qkv_format=bshd
		    attn_mask_type=no_mask → O=[[[[12.69]] [[11.19]]]] stats=[[[[1.313] [2.127]]]]
		  Q=[[[[1]] [[2]]]] K=[[[[1]] [[0]]]] V=[[[[10]] [[20]]]] qkv_format=bshd
		    attn_mask_type=causal → O=[[[[10]] [[11.19]]]] stats=[[[[1] [2.127]]]]
	`,
	Family:    "fused_attn",
	Forward:   true,
	Tolerance: opregistry.Arithmetic(1e-5, 1e-5, "scores up to 30 carry 30·2⁻²⁴·√d into the exponent"),
	Check:     checkAttention,
	Parts:     forwardParts,
})

// AttnDims are the sizes of an attention call. With THD, SeqQ and SeqKV are the
// tokens of all sequences.
type AttnDims struct {
	Batch, SeqQ, SeqKV, Heads, Groups, DimQK, DimV int
}

// Dims returns the sizes of the call.
func (a *FusedAttnFwdArgs) Dims() AttnDims {
	q, v := a.Q.Shape(), a.V.Shape()
	switch a.QKVFormat {
	case SBHD:
		return AttnDims{Batch: q[1], SeqQ: q[0], SeqKV: v[0], Heads: q[2], Groups: v[2], DimQK: q[3], DimV: v[3]}
	case THD:
		return AttnDims{Batch: a.CuSeqlensQ.NumElements() - 1, SeqQ: q[0], SeqKV: v[0], Heads: q[1], Groups: v[1], DimQK: q[2], DimV: v[2]}
	default:
		return AttnDims{Batch: q[0], SeqQ: q[1], SeqKV: v[1], Heads: q[2], Groups: v[2], DimQK: q[3], DimV: v[3]}
	}
}

// checkAttention checks the arguments that forward and backward share.
func checkAttention(c *opregistry.Check, a *FusedAttnFwdArgs) {
	if a.QKVFormat < SBHD || a.QKVFormat > THD {
		c.Fail("qkv_format", "sbhd, bshd or thd", "%v", a.QKVFormat)
	}
	if !a.AttnMaskType.valid() {
		c.Fail("attn_mask_type", "a mask type from no_mask to arbitrary", "%v", a.AttnMaskType)
	}
	rank := 4
	if a.QKVFormat == THD {
		rank = 3
	}
	for _, x := range [...]check.Named{{Name: "Q", Tensor: a.Q}, {Name: "K", Tensor: a.K}, {Name: "V", Tensor: a.V}, {Name: "O", Tensor: a.O}} {
		if !c.Rank(x.Name, x.Tensor, rank) {
			return
		}
	}
	if !sequences(c, a) {
		return
	}
	d := a.Dims()
	qkvShape(c, "K", a.K, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimQK)
	qkvShape(c, "V", a.V, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimV)
	qkvShape(c, "O", a.O, a.QKVFormat, d.Batch, d.SeqQ, d.Heads, d.DimV)
	if c.OK() && (d.Groups == 0 || d.Heads%d.Groups != 0) {
		c.Fail("K", "a number of heads that divides the "+check.Itoa(d.Heads)+" of Q", "%v", a.K)
	}
	if c.OK() && d.DimQK == 0 {
		c.Fail("Q", "heads of at least one element", "%v", a.Q)
	}
	if a.QKVFormat == THD {
		c.Elements("stats", a.Stats, d.SeqQ*d.Heads, "one per token and head of Q")
	} else {
		c.Elements("stats", a.Stats, d.Batch*d.Heads*d.SeqQ, "one per batch, head and query")
	}
	if a.MaxLogit != nil {
		c.Elements("max_logit", a.MaxLogit, d.Heads, "one per head")
	}
	checkOptions(c, a, d)
}

func qkvShape(c *opregistry.Check, name string, t *tensor.Tensor, f QKVFormat, b, s, h, d int) {
	if !c.OK() {
		return
	}
	want := [...]int{b, s, h, d}
	first := 0
	switch f {
	case SBHD:
		want[0], want[1] = s, b
	case THD:
		first = 1
	}
	if !t.Shape().Equal(want[first:]) {
		c.Fail(name, append(tensor.Shape(nil), want[first:]...).String(), "%v", t)
	}
}

// FusedAttnBwdArgs are the arguments of FusedAttnBwd.
type FusedAttnBwdArgs struct {
	Q              *tensor.Tensor           `op:"0 Q read compute"`
	K              *tensor.Tensor           `op:"1 K read =Q"`
	V              *tensor.Tensor           `op:"2 V read =Q"`
	O              *tensor.Tensor           `op:"3 O read =Q"`
	DO             *tensor.Tensor           `op:"4 dO read =O"`
	Stats          *tensor.Tensor           `op:"5 stats read f32"`
	DQ             *tensor.Tensor           `op:"6 dQ write =Q"`
	DK             *tensor.Tensor           `op:"7 dK write =K"`
	DV             *tensor.Tensor           `op:"8 dV write =V"`
	DBias          *tensor.Tensor           `op:"9 dbias write =bias ?"`
	DSoftmaxOffset *tensor.Tensor           `op:"10 dsoftmax_offset write f32 ?"`
	AttnScale      opregistry.OptionalFloat `op:"11 attn_scale"`
	QKVFormat      QKVFormat                `op:"12 qkv_format"`
	AttnMaskType   MaskType                 `op:"13 attn_mask_type"`
	AttnOptions    `op:"14"`                // as given to FusedAttnFwd
	Saved          *opregistry.Saved
}

// FusedAttnBwd is the gradient of FusedAttnFwd.
var FusedAttnBwd = opregistry.NewOp("fused_attn_bwd", opregistry.Schema[FusedAttnBwdArgs]{
	Doc: "gradient of fused_attn_fwd",
	Formula: `
		fused_attn_bwd is the gradient of fused_attn_fwd. With P = exp(S − stats) and D the factors
		of dropout, which are 1 without dropout:

		  dV = (P∘D)ᵀ·dO     dP = D∘(dO·Vᵀ)     dS = P∘(dP − rowsum(dO∘O))
		  dQ = scale·dX·K    dK = scale·dXᵀ·Q    dX = dS without softcap, else dS∘(1 − tanh²(x/softcap))
		  dbias = dS, or scale·dX with pre_scale_bias, added up over the axes that bias repeats
		  dsoftmax_offset[h] = −Σ_{b,i} exp(softmax_offset[h] − stats)·rowsum(dO∘O)

		and the gradients of query heads that share a head of K and V are added up. Rows that belong
		to no sequence get 0. Dtypes, and arguments without a comment, are those of fused_attn_fwd.

		Arguments:

		  Q                Q, K, V and O are those of fused_attn_fwd
		  dO               gradient of O
		  stats            from fused_attn_fwd
		  dQ               shape of Q
		  dK               shape of K
		  dV               shape of V
		  dbias            shape of bias, nil when not wanted
		  dsoftmax_offset  h elements, nil when not wanted
		  attn_scale       1/√d_qk when left out

		Example:

		  Q=[[[[1]] [[2]]]] K=[[[[1]] [[0]]]] V=[[[[10]] [[20]]]] O=[[[[12.69]] [[11.19]]]]
		    dO=[[[[1]] [[0]]]] stats=[[[[1.3133] [2.1269]]]] qkv_format=bshd attn_mask_type=no_mask
		    → dQ=[[[[-1.966]] [[0]]]] dK=[[[[-1.966]] [[1.966]]]] dV=[[[[0.731]] [[0.2689]]]]
	`,
	Family:    "fused_attn",
	Tolerance: opregistry.Arithmetic(5e-5, 2e-5, "as forward, and dP − rowsum(dO∘O) cancels"),
	Parts:     backwardParts,
	Check: func(c *opregistry.Check, a *FusedAttnBwdArgs) {
		fwd := a.Fwd()
		checkAttention(c, &fwd)
		c.SameShape("dO", a.DO, "O", a.O)
		c.SameShape("dQ", a.DQ, "Q", a.Q)
		c.SameShape("dK", a.DK, "K", a.K)
		c.SameShape("dV", a.DV, "V", a.V)
		optionGradients(c, a)
	},
})

// Fwd returns the arguments of the forward call that a is the gradient of.
func (a FusedAttnBwdArgs) Fwd() FusedAttnFwdArgs {
	return FusedAttnFwdArgs{
		Q: a.Q, K: a.K, V: a.V, O: a.O, Stats: a.Stats, AttnScale: a.AttnScale,
		QKVFormat: a.QKVFormat, AttnMaskType: a.AttnMaskType, AttnOptions: a.AttnOptions, Saved: a.Saved,
	}
}
