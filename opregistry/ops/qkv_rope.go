package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// FusedQKVRopeArgs are the arguments of FusedQKVRopeForward and FusedQKVRopeBackward. The shapes
// are those of SBHD; with BSHD the first two axes are exchanged.
type FusedQKVRopeArgs struct {
	QKV             *tensor.Tensor // fused projection, or its gradient: [s, b, g, q+k+v]
	QFreqs, KFreqs  *tensor.Tensor // f32 [s_max, .., d2] angles in radians, d2 even and <= k
	StartPositions  *tensor.Tensor // i32 [b], nil for 0; ignored with CPSize > 1
	Q               *tensor.Tensor // [s, b, g·q/k, k], or its gradient
	K               *tensor.Tensor // [s, b, g, k], or its gradient
	V               *tensor.Tensor // [s, b, g, v], or its gradient
	QKVSplitArgList []int          // [q, k, v]; k divides q
	QKVFormat       QKVFormat      // SBHD or BSHD
	Interleaved     bool
	CPSize, CPRank  int // context parallelism; size 0 means 1
}

// FusedQKVRopeForward splits a fused projection and rotates the heads of queries and keys as
// FusedRopeForward does:
//
//	q[.., n·i+j, :] = rope(qkv[.., i, j·k : (j+1)·k], q_freqs)     n = q/k heads of q in each group i
//	k[.., i, :]     = rope(qkv[.., i, q : q+k], k_freqs)
//	v[.., i, :]     = qkv[.., i, q+k : q+k+v]
//
// for qkv_split_arg_list = [q, k, v]. The position is the index in the sequence plus
// start_positions[b]; with CPSize > 1 it is that of the two chunks of FusedRopeForward, and
// start_positions is ignored. qkv, both tables of angles and start_positions are read; q, k and v
// are written; all are disjoint. qkv, q, k and v have one compute dtype and any strides; cos, sin
// and arithmetic are in f32 or better. Source: TransformerEngine 2.14, fused_qkv_rope.
var FusedQKVRopeForward = opregistry.NewOp("fused_qkv_rope_forward", opregistry.Schema[FusedQKVRopeArgs]{
	Doc: "parts of a fused projection, queries and keys with rotary position embedding",
	Validate: func(a FusedQKVRopeArgs) error {
		c := check{op: "fused_qkv_rope_forward"}
		c.qkvRope(a, "qkv_input", "q_out", "k_out", "v_out")
		c.disjointFrom("q_out", a.Q, named{"k_out", a.K}, named{"v_out", a.V})
		c.disjoint("k_out", a.K, "v_out", a.V)
		for _, o := range [...]named{{"q_out", a.Q}, {"k_out", a.K}, {"v_out", a.V}} {
			c.disjointFrom(o.name, o.t, named{"qkv_input", a.QKV}, named{"q_freqs", a.QFreqs}, named{"k_freqs", a.KFreqs},
				named{"start_positions", a.StartPositions})
		}
		return c.err
	},
	Lead: func(a FusedQKVRopeArgs) *tensor.Tensor { return a.QKV },
	Operands: func(a FusedQKVRopeArgs) []opregistry.Operand {
		return operands{}.read("qkv_input", a.QKV).read("q_freqs", a.QFreqs).read("k_freqs", a.KFreqs).
			read("start_positions", a.StartPositions).write("q_out", a.Q).write("k_out", a.K).write("v_out", a.V)
	},
})

// FusedQKVRopeBackward is the gradient of FusedQKVRopeForward: the gradients of q and k are rotated
// as in FusedRopeBackward and written, with that of v, to the places from which the forward op took
// q, k and v. Its operands are those of FusedQKVRopeForward, except that Q, K and V are gradients
// that are read, and QKV is the gradient that is written.
var FusedQKVRopeBackward = opregistry.NewOp("fused_qkv_rope_backward", opregistry.Schema[FusedQKVRopeArgs]{
	Doc: "gradient of fused_qkv_rope_forward",
	Validate: func(a FusedQKVRopeArgs) error {
		c := check{op: "fused_qkv_rope_backward"}
		c.qkvRope(a, "qkv_grad", "q_grad_out", "k_grad_out", "v_grad_out")
		c.disjointFrom("qkv_grad", a.QKV, named{"q_grad_out", a.Q}, named{"k_grad_out", a.K}, named{"v_grad_out", a.V},
			named{"q_freqs", a.QFreqs}, named{"k_freqs", a.KFreqs}, named{"start_positions", a.StartPositions})
		return c.err
	},
	Lead: func(a FusedQKVRopeArgs) *tensor.Tensor { return a.QKV },
	Operands: func(a FusedQKVRopeArgs) []opregistry.Operand {
		return operands{}.read("q_grad_out", a.Q).read("k_grad_out", a.K).read("v_grad_out", a.V).
			read("q_freqs", a.QFreqs).read("k_freqs", a.KFreqs).read("start_positions", a.StartPositions).write("qkv_grad", a.QKV)
	},
})

func (c *check) qkvRope(a FusedQKVRopeArgs, qkv, q, k, v string) {
	var nq, nk, nv int
	if len(a.QKVSplitArgList) == 3 {
		nq, nk, nv = a.QKVSplitArgList[0], a.QKVSplitArgList[1], a.QKVSplitArgList[2]
	}
	if nk <= 0 || nq < 0 || nv < 0 || nq%nk != 0 {
		c.fail("qkv_split_arg_list", "[q, k, v] with k > 0, v >= 0 and q a multiple of k", "%v", a.QKVSplitArgList)
	}
	if a.QKVFormat != SBHD && a.QKVFormat != BSHD {
		c.fail("qkv_format", "sbhd or bshd", "%v", a.QKVFormat)
	}
	if !c.compute(qkv, a.QKV) || !c.rank(qkv, a.QKV, 4) ||
		!c.dtype("q_freqs", a.QFreqs, tensor.F32) || !c.minRank("q_freqs", a.QFreqs, 2) ||
		!c.dtype("k_freqs", a.KFreqs, tensor.F32) || !c.minRank("k_freqs", a.KFreqs, 2) {
		return
	}
	s := a.QKV.Shape()
	if s[3] != nq+nk+nv {
		c.fail(qkv, fmt.Sprintf("a last axis of %d = %d + %d + %d", nq+nk+nv, nq, nk, nv), "%v", a.QKV)
	}
	c.part(q, a.Q, qkv, a.QKV, s[2]*(nq/nk), nk)
	c.part(k, a.K, qkv, a.QKV, s[2], nk)
	c.part(v, a.V, qkv, a.QKV, s[2], nv)
	seq, batch := s[0], s[1]
	if a.QKVFormat == BSHD {
		seq, batch = s[1], s[0]
	}
	c.angles("q_freqs", a.QFreqs, nk)
	c.angles("k_freqs", a.KFreqs, nk)
	c.contextParallel(a.CPSize, a.CPRank, qkv, a.QKV, seq)
	c.startPositions(a.StartPositions, batch)
	if c.err != nil || seq == 0 || batch == 0 {
		return
	}
	last := seq * max(a.CPSize, 1)
	for b := 0; a.StartPositions != nil && a.CPSize <= 1 && b < batch; b++ {
		last = max(last, seq+element(a.StartPositions, b))
	}
	c.positions("q_freqs", a.QFreqs, last)
	c.positions("k_freqs", a.KFreqs, last)
}

// part checks the heads that are one part of a fused projection.
func (c *check) part(name string, t *tensor.Tensor, qkvName string, qkv *tensor.Tensor, heads, d int) {
	if !c.compute(name, t) {
		return
	}
	c.sameDType(name, t, qkvName, qkv)
	s, w := t.Shape(), qkv.Shape()
	if c.err == nil && (len(s) != 4 || s[0] != w[0] || s[1] != w[1] || s[2] != heads || s[3] != d) {
		c.fail(name, tensor.Shape{w[0], w[1], heads, d}.String(), "%v", t)
	}
}
