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
	Q            *tensor.Tensor           // [b, s_q, h, d_qk]
	K            *tensor.Tensor           // [b, s_kv, g, d_qk], g divides h
	V            *tensor.Tensor           // [b, s_kv, g, d_v]
	O            *tensor.Tensor           // [b, s_q, h, d_v]
	Stats        *tensor.Tensor           // f32 [b, h, s_q, 1], with THD [t_q, h, 1]: log of the softmax's denominator
	MaxLogit     *tensor.Tensor           // f32 [h]: the largest score of each head, nil when not wanted
	AttnScale    opregistry.OptionalFloat // 1/√d_qk when left out
	QKVFormat    QKVFormat
	AttnMaskType MaskType
	AttnOptions
	Saved *opregistry.Saved
}

// FusedAttnFwd is scaled dot-product attention with grouped keys and values:
//
//	S[b,h,i,j] = scale · Σ_d Q[b,i,h,d]·K[b,j,h·g/h_q,d], −∞ where hidden
//	Z[b,h,i]   = Σ_j exp(S[b,h,i,j])
//	P[b,h,i,j] = exp(S[b,h,i,j]) / Z[b,h,i]
//	O[b,i,h,:] = Σ_j P[b,h,i,j] · V[b,j,h·g/h_q,:]
//	stats      = ln Z      max_logit[h] = max S[·,h,·,·]
//
// Each head of K and V serves h/g consecutive heads of Q. The mask type or the window hides a key
// from a query. A query that sees no key gets O = 0 and stats = −∞, a head without a score gets
// max_logit = −∞. Rows of O and stats that belong to no sequence are set to 0 and −∞.
//
// AttnOptions can add a bias to S, add a term to Z and apply dropout to P.
//
// Q, K, V and the tensors of AttnOptions are read; O, stats and max_logit are written; the written
// operands are disjoint from all others; strides are arbitrary. Q, K, V and O have one compute
// dtype; arithmetic is in f32 or better.
//
// This op is what TransformerEngine's get_flash_attention_class returns as a Python class; a class
// is not an op, so the catalogue has none of that name. The op has neither paged keys nor keys in
// another format than the queries. Source: TransformerEngine 2.14, fused_attn_fwd; Dao et al. 2022,
// arXiv:2205.14135, for the saved log-sum-exp.
var FusedAttnFwd = opregistry.NewOp("fused_attn_fwd", opregistry.Schema[FusedAttnFwdArgs]{
	Doc:     "scaled dot-product attention with grouped keys and values",
	Family:  "fused_attn",
	Forward: true,
	Saved:   func(a FusedAttnFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedAttnFwdArgs) error {
		c := check.Call{Op: "fused_attn_fwd"}
		attention(&c, a)
		c.Apart([]check.Named{{Name: "max_logit", Tensor: a.MaxLogit}, {Name: "stats", Tensor: a.Stats}, {Name: "O", Tensor: a.O}},
			[]check.Named{{Name: "Q", Tensor: a.Q}, {Name: "K", Tensor: a.K}, {Name: "V", Tensor: a.V}})
		apartFromOptions(&c, []check.Named{{Name: "max_logit", Tensor: a.MaxLogit}, {Name: "stats", Tensor: a.Stats}, {Name: "O", Tensor: a.O}}, a.AttnOptions)
		return c.Err
	},
	Lead: func(a FusedAttnFwdArgs) *tensor.Tensor { return a.Q },
	Operands: func(a FusedAttnFwdArgs) []opregistry.Operand {
		return options(check.Operands{}.Read("Q", a.Q).Read("K", a.K).Read("V", a.V), a.AttnOptions).
			Write("O", a.O).Write("stats", a.Stats).Write("max_logit", a.MaxLogit)
	},
})

// AttnDims are the sizes of an attention call. With THD, SeqQ and SeqKV are the
// tokens of all sequences.
type AttnDims struct {
	Batch, SeqQ, SeqKV, Heads, Groups, DimQK, DimV int
}

// Dims returns the sizes of the call.
func (a FusedAttnFwdArgs) Dims() AttnDims {
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

// attention checks the arguments that forward and backward share, except for aliasing.
func attention(c *check.Call, a FusedAttnFwdArgs) {
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
		if !c.Compute(x.Name, x.Tensor) || !c.Rank(x.Name, x.Tensor, rank) {
			return
		}
		c.SameDType(x.Name, x.Tensor, "Q", a.Q)
	}
	if !sequences(c, a) {
		return
	}
	d := a.Dims()
	qkvShape(c, "K", a.K, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimQK)
	qkvShape(c, "V", a.V, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimV)
	qkvShape(c, "O", a.O, a.QKVFormat, d.Batch, d.SeqQ, d.Heads, d.DimV)
	if c.Err == nil && (d.Groups == 0 || d.Heads%d.Groups != 0) {
		c.Fail("K", "a number of heads that divides the "+check.Itoa(d.Heads)+" of Q", "%v", a.K)
	}
	if c.Err == nil && d.DimQK == 0 {
		c.Fail("Q", "heads of at least one element", "%v", a.Q)
	}
	if c.DType("stats", a.Stats, tensor.F32) {
		if a.QKVFormat == THD {
			c.Elements("stats", a.Stats, d.SeqQ*d.Heads, "one a token and head of Q")
		} else {
			c.Elements("stats", a.Stats, d.Batch*d.Heads*d.SeqQ, "one a batch, head and query")
		}
	}
	if a.MaxLogit != nil && c.DType("max_logit", a.MaxLogit, tensor.F32) {
		c.Elements("max_logit", a.MaxLogit, d.Heads, "one a head")
	}
	checkOptions(c, a, d)
	c.Saved(a.Saved)
}

func qkvShape(c *check.Call, name string, t *tensor.Tensor, f QKVFormat, b, s, h, d int) {
	if c.Err != nil {
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
	Q, K, V, O     *tensor.Tensor           // as given to and written by FusedAttnFwd
	DO             *tensor.Tensor           // gradient of O
	Stats          *tensor.Tensor           // from FusedAttnFwd
	DQ, DK, DV     *tensor.Tensor           // shapes of Q, K, V
	DBias          *tensor.Tensor           // shape of Bias, nil when not wanted
	DSoftmaxOffset *tensor.Tensor           // f32, h elements, nil when not wanted
	AttnScale      opregistry.OptionalFloat // 1/√d_qk when left out
	QKVFormat      QKVFormat
	AttnMaskType   MaskType
	AttnOptions    // as given to FusedAttnFwd
	Saved          *opregistry.Saved
}

// FusedAttnBwd is the gradient of FusedAttnFwd. With P = exp(S − stats) and D the factors of
// dropout, which are 1 without dropout:
//
//	dV = (P∘D)ᵀ·dO     dP = D∘(dO·Vᵀ)     dS = P∘(dP − rowsum(dO∘O))
//	dQ = scale·dS·K    dK = scale·dSᵀ·Q
//	dbias = dS, or scale·dS with PreScaleBias, added up over the axes that bias repeats
//	dsoftmax_offset[h] = −Σ_{b,i} exp(softmax_offset[h] − stats)·rowsum(dO∘O)
//
// and the gradients of query heads that share a head of K and V are added up. Rows that belong to
// no sequence get 0. The operands named d… except dO are written, the others are read; the written
// operands are disjoint from all others. dbias has the dtype of bias; other dtypes are those of
// FusedAttnFwd.
var FusedAttnBwd = opregistry.NewOp("fused_attn_bwd", opregistry.Schema[FusedAttnBwdArgs]{
	Doc:    "gradient of fused_attn_fwd",
	Family: "fused_attn",
	Saved:  func(a FusedAttnBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedAttnBwdArgs) error {
		c := check.Call{Op: "fused_attn_bwd"}
		attention(&c, a.Fwd())
		Like(&c, "dO", a.DO, "O", a.O)
		Like(&c, "dQ", a.DQ, "Q", a.Q)
		Like(&c, "dK", a.DK, "K", a.K)
		Like(&c, "dV", a.DV, "V", a.V)
		optionGradients(&c, a)
		writes := [...]check.Named{{Name: "dQ", Tensor: a.DQ}, {Name: "dK", Tensor: a.DK}, {Name: "dV", Tensor: a.DV}, {Name: "dbias", Tensor: a.DBias}, {Name: "dsoftmax_offset", Tensor: a.DSoftmaxOffset}}
		c.Apart(writes[:], []check.Named{{Name: "Q", Tensor: a.Q}, {Name: "K", Tensor: a.K}, {Name: "V", Tensor: a.V}, {Name: "O", Tensor: a.O}, {Name: "dO", Tensor: a.DO}, {Name: "stats", Tensor: a.Stats}})
		apartFromOptions(&c, writes[:], a.AttnOptions)
		return c.Err
	},
	Lead: func(a FusedAttnBwdArgs) *tensor.Tensor { return a.Q },
	Operands: func(a FusedAttnBwdArgs) []opregistry.Operand {
		return options(check.Operands{}.Read("Q", a.Q).Read("K", a.K).Read("V", a.V).Read("O", a.O).Read("dO", a.DO).
			Read("stats", a.Stats), a.AttnOptions).Write("dQ", a.DQ).Write("dK", a.DK).Write("dV", a.DV).
			Write("dbias", a.DBias).Write("dsoftmax_offset", a.DSoftmaxOffset)
	},
})

// Fwd returns the arguments of the forward call that a is the gradient of.
func (a FusedAttnBwdArgs) Fwd() FusedAttnFwdArgs {
	return FusedAttnFwdArgs{
		Q: a.Q, K: a.K, V: a.V, O: a.O, Stats: a.Stats, AttnScale: a.AttnScale,
		QKVFormat: a.QKVFormat, AttnMaskType: a.AttnMaskType, AttnOptions: a.AttnOptions, Saved: a.Saved,
	}
}

func Like(c *check.Call, name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.Compute(name, t) {
		c.SameDType(name, t, other, o)
		c.SameShape(name, t, other, o)
	}
}
