package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// MaskType says which keys a query of an attention op sees.
type MaskType uint8

// The mask types.
const (
	MaskUnspecified       MaskType = iota
	NoMask                         // every key
	CausalMask                     // key j for query i when j <= i
	CausalBottomRightMask          // key j for query i when j <= i + s_kv − s_q
)

// String returns the mask type in TransformerEngine's spelling.
func (m MaskType) String() string {
	switch m {
	case NoMask:
		return "no_mask"
	case CausalMask:
		return "causal"
	case CausalBottomRightMask:
		return "causal_bottom_right"
	default:
		return fmt.Sprintf("mask_type(%d)", uint8(m))
	}
}

// FusedAttnFwdArgs are the arguments of FusedAttnFwd. The shapes are those of
// BSHD; with SBHD the first two axes are exchanged.
type FusedAttnFwdArgs struct {
	Q            *tensor.Tensor // [b, s_q, h, d_qk]
	K            *tensor.Tensor // [b, s_kv, g, d_qk], g divides h
	V            *tensor.Tensor // [b, s_kv, g, d_v]
	O            *tensor.Tensor // [b, s_q, h, d_v]
	Stats        *tensor.Tensor // f32 [b, h, s_q, 1]: log-sum-exp of the scaled, masked scores
	AttnScale    OptionalFloat  // 1/√d_qk when left out
	QKVFormat    QKVFormat      // SBHD or BSHD
	AttnMaskType MaskType
	Saved        *opregistry.Saved
}

// FusedAttnFwd is scaled dot-product attention with grouped keys and values:
//
//	S[b,h,i,j] = scale · Σ_d Q[b,i,h,d]·K[b,j,h·g/h_q,d], −∞ where masked
//	O[b,i,h,:] = Σ_j softmax_j(S)[b,h,i,j] · V[b,j,h·g/h_q,:]
//	stats      = ln Σ_j exp(S[b,h,i,j])
//
// Each head of K and V serves h/g consecutive heads of Q. A query that sees no
// key gets O = 0 and stats = −∞. Q, K and V are read, O and stats are written;
// all are disjoint, any strides. One compute dtype for Q, K, V and O; arithmetic
// in f32 or better. Source: TransformerEngine 2.14, fused_attn_fwd; Dao et al.
// 2022, arXiv:2205.14135, for the saved log-sum-exp.
var FusedAttnFwd = opregistry.NewOp("fused_attn_fwd", opregistry.Schema[FusedAttnFwdArgs]{
	Doc:     "scaled dot-product attention with grouped keys and values",
	Family:  "fused_attn",
	Forward: true,
	Saved:   func(a FusedAttnFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedAttnFwdArgs) error {
		c := check{op: "fused_attn_fwd"}
		c.attention(a)
		c.disjoint("O", a.O, "Q", a.Q)
		c.disjoint("O", a.O, "K", a.K)
		c.disjoint("O", a.O, "V", a.V)
		c.disjoint("stats", a.Stats, "O", a.O)
		c.disjoint("stats", a.Stats, "Q", a.Q)
		c.disjoint("stats", a.Stats, "K", a.K)
		c.disjoint("stats", a.Stats, "V", a.V)
		return c.err
	},
	Lead: func(a FusedAttnFwdArgs) *tensor.Tensor { return a.Q },
	Operands: func(a FusedAttnFwdArgs) []opregistry.Operand {
		return operands{}.read("Q", a.Q).read("K", a.K).read("V", a.V).write("O", a.O).write("stats", a.Stats)
	},
})

// AttnDims are the sizes of an attention call.
type AttnDims struct {
	Batch, SeqQ, SeqKV, Heads, Groups, DimQK, DimV int
}

// Dims returns the sizes of the call.
func (a FusedAttnFwdArgs) Dims() AttnDims {
	q, v := a.Q.Shape(), a.V.Shape()
	d := AttnDims{Batch: q[0], SeqQ: q[1], SeqKV: v[1], Heads: q[2], Groups: v[2], DimQK: q[3], DimV: v[3]}
	if a.QKVFormat == SBHD {
		d.Batch, d.SeqQ, d.SeqKV = q[1], q[0], v[0]
	}
	return d
}

func (c *check) attention(a FusedAttnFwdArgs) {
	if a.QKVFormat != SBHD && a.QKVFormat != BSHD {
		c.fail("qkv_format", "sbhd or bshd", "%v", a.QKVFormat)
	}
	if a.AttnMaskType < NoMask || a.AttnMaskType > CausalBottomRightMask {
		c.fail("attn_mask_type", "no_mask, causal or causal_bottom_right", "%v", a.AttnMaskType)
	}
	if !c.compute("Q", a.Q) || !c.compute("K", a.K) || !c.compute("V", a.V) || !c.compute("O", a.O) ||
		!c.rank("Q", a.Q, 4) || !c.rank("K", a.K, 4) || !c.rank("V", a.V, 4) || !c.rank("O", a.O, 4) {
		return
	}
	c.sameDType("K", a.K, "Q", a.Q)
	c.sameDType("V", a.V, "Q", a.Q)
	c.sameDType("O", a.O, "Q", a.Q)
	d := a.Dims()
	c.qkvShape("K", a.K, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimQK)
	c.qkvShape("V", a.V, a.QKVFormat, d.Batch, d.SeqKV, d.Groups, d.DimV)
	c.qkvShape("O", a.O, a.QKVFormat, d.Batch, d.SeqQ, d.Heads, d.DimV)
	if c.err == nil && (d.Groups == 0 || d.Heads%d.Groups != 0) {
		c.fail("K", "a number of heads that divides the "+itoa(d.Heads)+" of Q", "%v", a.K)
	}
	if c.err == nil && d.DimQK == 0 {
		c.fail("Q", "heads of at least one element", "%v", a.Q)
	}
	if c.dtype("stats", a.Stats, tensor.F32) {
		c.elements("stats", a.Stats, d.Batch*d.Heads*d.SeqQ, "one a batch, head and query")
	}
	c.saved(a.Saved)
}

func (c *check) qkvShape(name string, t *tensor.Tensor, f QKVFormat, b, s, h, d int) {
	if c.err != nil {
		return
	}
	first, second := b, s
	if f == SBHD {
		first, second = s, b
	}
	sh := t.Shape()
	if sh[0] != first || sh[1] != second || sh[2] != h || sh[3] != d {
		c.fail(name, tensor.Shape{first, second, h, d}.String(), "%v", t)
	}
}

// FusedAttnBwdArgs are the arguments of FusedAttnBwd.
type FusedAttnBwdArgs struct {
	Q, K, V, O   *tensor.Tensor // as given to and written by FusedAttnFwd
	DO           *tensor.Tensor // gradient of O
	Stats        *tensor.Tensor // from FusedAttnFwd
	DQ, DK, DV   *tensor.Tensor // shapes of Q, K, V
	AttnScale    OptionalFloat  // 1/√d_qk when left out
	QKVFormat    QKVFormat
	AttnMaskType MaskType
	Saved        *opregistry.Saved
}

// FusedAttnBwd is the gradient of FusedAttnFwd. With P = exp(S − stats):
//
//	dV = Pᵀ·dO     dP = dO·Vᵀ     dS = P∘(dP − rowsum(dO∘O))
//	dQ = scale·dS·K                dK = scale·dSᵀ·Q
//
// and the gradients of the query heads that share a head of K and V added up.
// DQ, DK and DV are written, all else is read; what is written is disjoint from
// everything. Dtypes as FusedAttnFwd.
var FusedAttnBwd = opregistry.NewOp("fused_attn_bwd", opregistry.Schema[FusedAttnBwdArgs]{
	Doc:    "gradient of fused_attn_fwd",
	Family: "fused_attn",
	Saved:  func(a FusedAttnBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedAttnBwdArgs) error {
		c := check{op: "fused_attn_bwd"}
		c.attention(a.Fwd())
		c.like("dO", a.DO, "O", a.O)
		c.like("dQ", a.DQ, "Q", a.Q)
		c.like("dK", a.DK, "K", a.K)
		c.like("dV", a.DV, "V", a.V)
		if c.err != nil {
			return c.err
		}
		reads := [...]*tensor.Tensor{a.Q, a.K, a.V, a.O, a.DO, a.Stats}
		names := [...]string{"Q", "K", "V", "O", "dO", "stats"}
		for i, r := range reads {
			c.disjoint("dQ", a.DQ, names[i], r)
			c.disjoint("dK", a.DK, names[i], r)
			c.disjoint("dV", a.DV, names[i], r)
		}
		c.disjoint("dQ", a.DQ, "dK", a.DK)
		c.disjoint("dQ", a.DQ, "dV", a.DV)
		c.disjoint("dK", a.DK, "dV", a.DV)
		return c.err
	},
	Lead: func(a FusedAttnBwdArgs) *tensor.Tensor { return a.Q },
	Operands: func(a FusedAttnBwdArgs) []opregistry.Operand {
		return operands{}.read("Q", a.Q).read("K", a.K).read("V", a.V).read("O", a.O).read("dO", a.DO).
			read("stats", a.Stats).write("dQ", a.DQ).write("dK", a.DK).write("dV", a.DV)
	},
})

// Fwd returns the arguments of the forward call that a is the gradient of.
func (a FusedAttnBwdArgs) Fwd() FusedAttnFwdArgs {
	return FusedAttnFwdArgs{
		Q: a.Q, K: a.K, V: a.V, O: a.O, Stats: a.Stats, AttnScale: a.AttnScale,
		QKVFormat: a.QKVFormat, AttnMaskType: a.AttnMaskType, Saved: a.Saved,
	}
}

func (c *check) like(name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.compute(name, t) {
		c.sameDType(name, t, other, o)
		c.sameShape(name, t, other, o)
	}
}
