package rope

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FusedQKVRopeArgs are the arguments of FusedQKVRopeForward and FusedQKVRopeBackward. The shapes
// are those of SBHD; with BSHD the first two axes are exchanged.
type FusedQKVRopeArgs struct {
	QKV             *tensor.Tensor      `op:"0 qkv read compute [_ _ _ _]"`          // fused projection, or its gradient: [s, b, g, q+k+v]
	QFreqs          *tensor.Tensor      `op:"1 q_freqs read f32 [* _ _] was=qfreqs"` // [s_max, .., d2] angles in radians, d2 even and <= k
	KFreqs          *tensor.Tensor      `op:"2 k_freqs read f32 [* _ _] was=kfreqs"` // as q_freqs
	StartPositions  *tensor.Tensor      `op:"3 start_positions read i32 ?"`          // [b], nil for 0; ignored with CPSize > 1
	Q               *tensor.Tensor      `op:"4 q write =qkv"`                        // [s, b, g·q/k, k], or its gradient
	K               *tensor.Tensor      `op:"5 k write =qkv"`                        // [s, b, g, k], or its gradient
	V               *tensor.Tensor      `op:"6 v write =qkv"`                        // [s, b, g, v], or its gradient
	QKVSplitArgList []int               `op:"7 qkv_split_arg_list"`                  // [q, k, v]; k divides q
	QKVFormat       attention.QKVFormat `op:"8 qkv_format"`                          // SBHD or BSHD
	Interleaved     bool                `op:"9 interleaved"`
	CPSize          int                 `op:"10 cp_size"` // context parallelism; 0 means 1
	CPRank          int                 `op:"11 cp_rank"`
}

// FusedQKVRopeForward splits a fused projection and rotates the heads of queries and keys as
// FusedRopeForward does.
var FusedQKVRopeForward = opregistry.NewOp("fused_qkv_rope_forward", opregistry.Schema[FusedQKVRopeArgs]{
	Doc: "parts of a fused projection, queries and keys with rotary position embedding",
	Formula: `
		fused_qkv_rope_forward splits a fused projection and rotates the heads of queries and keys
		as fused_rope_forward does:

		  q[.., n·i+j, :] = rope(qkv[.., i, j·k : (j+1)·k], q_freqs)     n = q/k heads of q in each group i
		  k[.., i, :]     = rope(qkv[.., i, q : q+k], k_freqs)
		  v[.., i, :]     = qkv[.., i, q+k : q+k+v]

		for qkv_split_arg_list = [q, k, v]. The position is the index in the sequence plus
		start_positions[b]; with cp_size > 1 it is that of the two chunks of fused_rope_forward, and
		start_positions is ignored. qkv, q, k and v have one compute dtype and any strides; cos, sin
		and arithmetic are in f32 or better. Source: TransformerEngine 2.14, fused_qkv_rope.

		Arguments:

		  qkv                 fused projection, or its gradient: [s, b, g, q+k+v]
		  q_freqs             [s_max, .., d2] angles in radians, d2 even and <= k
		  k_freqs             as q_freqs
		  start_positions     [b], nil for 0; ignored with cp_size > 1
		  q                   [s, b, g·q/k, k], or its gradient
		  k                   [s, b, g, k], or its gradient
		  v                   [s, b, g, v], or its gradient
		  qkv_split_arg_list  [q, k, v]; k divides q
		  qkv_format          SBHD or BSHD
		  cp_size             context parallelism; 0 means 1

		Example:

		  qkv=[[[[1 2 3 4 5 6]]] [[[1 0 0 1 7 8]]]] q_freqs=[[0 0] [0.5 0.5]] k_freqs=[[0 0] [0.5
		    0.5]] qkv_split_arg_list=(2 2 2) qkv_format=sbhd → q=[[[[1 2]]] [[[0.8776 0.4794]]]]
		    k=[[[[3 4]]] [[[-0.4794 0.8776]]]] v=[[[[5 6]]] [[[7 8]]]]
	`,
	Tolerance: opregistry.Arithmetic(2e-6, 0, "as fused_rope_forward"),
	Check:     checkQKVRope,
})

// FusedQKVRopeBackward is the gradient of FusedQKVRopeForward.
var FusedQKVRopeBackward = opregistry.NewOp("fused_qkv_rope_backward", opregistry.Schema[FusedQKVRopeArgs]{
	Doc: "gradient of fused_qkv_rope_forward",
	Formula: `
		fused_qkv_rope_backward is the gradient of fused_qkv_rope_forward: the gradients of q and k
		are rotated as in fused_rope_backward and written, with that of v, to the places from which
		the forward op took q, k and v. Its operands are those of fused_qkv_rope_forward, except
		that Q, K and V are gradients that are read, and qkv is the gradient that is written.

		Arguments:

		  qkv                 fused projection, or its gradient: [s, b, g, q+k+v]
		  q_freqs             [s_max, .., d2] angles in radians, d2 even and <= k
		  k_freqs             as q_freqs
		  start_positions     [b], nil for 0; ignored with cp_size > 1
		  q                   [s, b, g·q/k, k], or its gradient
		  k                   [s, b, g, k], or its gradient
		  v                   [s, b, g, v], or its gradient
		  qkv_split_arg_list  [q, k, v]; k divides q
		  qkv_format          SBHD or BSHD
		  cp_size             context parallelism; 0 means 1

		Example:

		  q_freqs=[[0.5 0.5]] k_freqs=[[0.5 0.5]] q=[[[[1 0]]]] k=[[[[0 1]]]] v=[[[[7 8]]]]
		    qkv_split_arg_list=(2 2 2) qkv_format=sbhd → qkv=[[[[0.8776 -0.4794 0.4794 0.8776 7
		    8]]]]
	`,
	Tolerance: opregistry.Arithmetic(2e-6, 0, "as fused_rope_forward"),
	Where:     "qkv write; q read; k read; v read",
	Check:     checkQKVRope,
})

func checkQKVRope(c *opregistry.Check, a *FusedQKVRopeArgs) {
	const qkv = "qkv"
	var nq, nk, nv int
	if len(a.QKVSplitArgList) == 3 {
		nq, nk, nv = a.QKVSplitArgList[0], a.QKVSplitArgList[1], a.QKVSplitArgList[2]
	}
	if nk <= 0 || nq < 0 || nv < 0 || nq%nk != 0 {
		c.Fail("qkv_split_arg_list", "[q, k, v] with k > 0, v >= 0 and q a multiple of k", "%v", a.QKVSplitArgList)
	}
	if a.QKVFormat != attention.SBHD && a.QKVFormat != attention.BSHD {
		c.Fail("qkv_format", "sbhd or bshd", "%v", a.QKVFormat)
	}
	if !c.OK() {
		return
	}
	s := a.QKV.Shape()
	if s[3] != nq+nk+nv {
		c.Fail(qkv, fmt.Sprintf("a last axis of %d = %d + %d + %d", nq+nk+nv, nq, nk, nv), "%v", a.QKV)
	}
	part(c, "q", a.Q, a.QKV, s[2]*(nq/nk), nk)
	part(c, "k", a.K, a.QKV, s[2], nk)
	part(c, "v", a.V, a.QKV, s[2], nv)
	seq, batch := s[0], s[1]
	if a.QKVFormat == attention.BSHD {
		seq, batch = s[1], s[0]
	}
	angles(c, "q_freqs", a.QFreqs, nk)
	angles(c, "k_freqs", a.KFreqs, nk)
	contextParallel(c, a.CPSize, a.CPRank, qkv, a.QKV, seq)
	startPositions(c, a.StartPositions, batch)
	if !c.OK() || seq == 0 || batch == 0 {
		return
	}
	last := seq * max(a.CPSize, 1)
	for b := 0; a.StartPositions != nil && a.CPSize <= 1 && b < batch; b++ {
		last = max(last, seq+check.Element(a.StartPositions, b))
	}
	positions(c, "q_freqs", a.QFreqs, last)
	positions(c, "k_freqs", a.KFreqs, last)
}

// part checks the heads that are one part of a fused projection.
func part(c *opregistry.Check, name string, t, qkv *tensor.Tensor, heads, d int) {
	s, w := t.Shape(), qkv.Shape()
	if c.OK() && (len(s) != 4 || s[0] != w[0] || s[1] != w[1] || s[2] != heads || s[3] != d) {
		c.Fail(name, tensor.Shape{w[0], w[1], heads, d}.String(), "%v", t)
	}
}
