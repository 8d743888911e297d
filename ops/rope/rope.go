package rope

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FusedRopeArgs are the arguments of FusedRopeForward and FusedRopeBackward.
type FusedRopeArgs struct {
	Input          *tensor.Tensor      `op:"0 input read compute [..]"`            // x, or the gradient of y: [s b h d], [b s h d] or [t h d]
	Freqs          *tensor.Tensor      `op:"1 freqs read f32 [* _ _]"`             // [s_max, .., d2] angles in radians, d2 even and <= d
	StartPositions *tensor.Tensor      `op:"2 start_positions read i32 ?"`         // [b], nil for 0
	Output         *tensor.Tensor      `op:"3 output write =input [..] may=input"` // y, or the gradient of x
	QKVFormat      attention.QKVFormat `op:"4 qkv_format"`
	Interleaved    bool                `op:"5 interleaved"`
	CuSeqlens      *tensor.Tensor      `op:"6 cu_seqlens read i32 ?"` // [b+1], for THD only
	CPSize         int                 `op:"7 cp_size"`               // context parallelism; 0 means 1
	CPRank         int                 `op:"8 cp_rank"`
}

// FusedRopeForward rotates pairs of the first d2 elements of each head by the angles of their
// position and copies the other elements.
var FusedRopeForward = newRope("fused_rope_forward", "rotary position embedding", `
		fused_rope_forward rotates pairs of the first d2 elements of each head by the angles of
		their position and copies the other elements:

		  y = x·cos θ + rot(x)·sin θ      θ = freqs[position, ·]

		Pairs are (i, i+d2/2) with rot(x) = [−x₂, x₁], or with interleaved (2i, 2i+1) with rot =
		[−x_{2i+1}, x_{2i}]; each element uses the θ of its own index. The position is the index in
		the sequence plus start_positions[b]; with THD it restarts at each sequence of cu_seqlens.
		With cp_size > 1 the first half of the local sequence is chunk cp_rank of 2·cp_size and the
		second half is chunk 2·cp_size−1−cp_rank; cu_seqlens counts the tokens of the whole
		sequences, of which x holds 1/cp_size each, so that it is the same on every rank.

		x and y have one compute dtype and any strides; cos, sin and arithmetic are in f32. Source:
		Su et al. 2021, arXiv:2104.09864; TransformerEngine 2.14, fused_rope.

		Arguments:

		  input            x, or the gradient of y: [s b h d], [b s h d] or [t h d]
		  freqs            [s_max, .., d2] angles in radians, d2 even and <= d
		  start_positions  [b], nil for 0
		  output           y, or the gradient of x
		  cu_seqlens       [b+1], for THD only
		  cp_size          context parallelism; 0 means 1

		Example:

		  input=[[[[1 0]]] [[[1 0]]]] freqs=[[0 0] [0.5 0.5]] qkv_format=sbhd → output=[[[[1 0]]]
		    [[[0.8776 0.4794]]]]
	`,
	opregistry.Arithmetic(2e-6, 0, "cosine and sine of f32 angles up to 4096, products of magnitude 1"))

// FusedRopeBackward is the gradient of FusedRopeForward.
var FusedRopeBackward = newRope("fused_rope_backward", "gradient of fused_rope_forward", `
		fused_rope_backward is the gradient of fused_rope_forward: the transposed rotation,

		  dx_i = dy_i·cos θ_i + rotᵀ(dy·sin θ)_i

		which takes the sine at the partner's index. Its operands are those of fused_rope_forward,
		except that input is the gradient of y and output that of x.

		Arguments:

		  input            x, or the gradient of y: [s b h d], [b s h d] or [t h d]
		  freqs            [s_max, .., d2] angles in radians, d2 even and <= d
		  start_positions  [b], nil for 0
		  output           y, or the gradient of x
		  cu_seqlens       [b+1], for THD only
		  cp_size          context parallelism; 0 means 1

		Example:

		  input=[[[[1 0]]] [[[1 0]]]] freqs=[[0 0] [0.5 0.5]] qkv_format=sbhd → output=[[[[1 0]]]
		    [[[0.8776 -0.4794]]]]
	`,
	opregistry.Arithmetic(2e-6, 0, "as forward"))

func newRope(name, doc, formula string, tolerance opregistry.Tolerance) *opregistry.Op[FusedRopeArgs] {
	return opregistry.NewOp(name, opregistry.Schema[FusedRopeArgs]{Doc: doc, Formula: formula, Tolerance: tolerance, Check: checkRope})
}

func checkRope(c *opregistry.Check, a *FusedRopeArgs) {
	shape, seq, batch := a.Input.Shape(), 0, 0
	switch a.QKVFormat {
	case attention.SBHD:
		if c.Rank("input", a.Input, 4) {
			seq, batch = shape[0], shape[1]
		}
	case attention.BSHD:
		if c.Rank("input", a.Input, 4) {
			batch, seq = shape[0], shape[1]
		}
	case attention.THD:
		if c.Rank("input", a.Input, 3) && c.Given("cu_seqlens", a.CuSeqlens) && c.Rank("cu_seqlens", a.CuSeqlens, 1) {
			cuSeqlens(c, "cu_seqlens", a.CuSeqlens, shape[0], max(a.CPSize, 1))
			batch = a.CuSeqlens.NumElements() - 1
		}
	default:
		c.Fail("qkv_format", "sbhd, bshd or thd", "%v", a.QKVFormat)
	}
	if a.QKVFormat != attention.THD && a.CuSeqlens != nil {
		c.Fail("cu_seqlens", "nil unless qkv_format is thd", "%v", a.CuSeqlens)
	}
	if !c.OK() {
		return
	}
	angles(c, "freqs", a.Freqs, shape.Cols())
	contextParallel(c, a.CPSize, a.CPRank, "input", a.Input, seq)
	startPositions(c, a.StartPositions, batch)
	last, cp := 0, max(a.CPSize, 1)
	for b := 0; c.OK() && b < batch; b++ {
		length, start := seq*cp, 0
		if a.QKVFormat == attention.THD {
			length = check.Element(a.CuSeqlens, b+1) - check.Element(a.CuSeqlens, b)
		}
		if a.StartPositions != nil {
			start = check.Element(a.StartPositions, b)
		}
		if length > 0 {
			last = max(last, start+length)
		}
	}
	positions(c, "freqs", a.Freqs, last)
}

// angles checks the length of the rows of a table of angles for heads of d elements.
func angles(c *opregistry.Check, name string, freqs *tensor.Tensor, d int) {
	if d2 := freqs.Shape().Cols(); c.OK() && (d2%2 != 0 || d2 > d) {
		c.Fail(name, "an even last axis of at most "+check.Itoa(d), "%v", freqs)
	}
}

// positions checks that a table of angles has rows for n positions.
func positions(c *opregistry.Check, name string, freqs *tensor.Tensor, n int) {
	if c.OK() && freqs.NumElements()/max(freqs.Shape().Cols(), 1) < n {
		c.Fail(name, "at least "+check.Itoa(n)+" positions", "%v", freqs)
	}
}

// contextParallel checks size and rank, and that a sequence of seq local positions
// can be cut in two.
func contextParallel(c *opregistry.Check, size, rank int, name string, t *tensor.Tensor, seq int) {
	ranks := max(size, 1)
	if c.OK() && (size < 0 || rank < 0 || rank >= ranks) {
		c.Fail("cp_rank", "0 <= cp_rank < cp_size", "cp_rank %d of cp_size %d", rank, size)
	}
	if c.OK() && ranks > 1 && seq%2 != 0 {
		c.Fail(name, "an even sequence length with cp_size > 1", "%v", t)
	}
}

// startPositions checks the first positions of the sequences, nil for 0.
func startPositions(c *opregistry.Check, t *tensor.Tensor, batch int) {
	const name = "start_positions"
	if t == nil || !c.Rank(name, t, 1) {
		return
	}
	c.Elements(name, t, batch, "one per sequence")
	for b := 0; c.OK() && b < batch; b++ {
		if start := check.Element(t, b); start < 0 {
			c.Fail(name, "positions >= 0", "%d", start)
		}
	}
}

// cuSeqlens checks cumulative lengths of sequences, of whose tokens this rank holds a part: they
// must begin with 0, never fall and end with the tokens of all ranks. With several ranks every
// length must be divisible into two chunks per rank.
func cuSeqlens(c *opregistry.Check, name string, t *tensor.Tensor, tokens, ranks int) {
	if !c.OK() {
		return
	}
	t = check.Host(t)
	n := t.NumElements()
	if n == 0 || check.Element(t, 0) != 0 || check.Element(t, n-1) != tokens*ranks {
		c.Fail(name, "0 first and "+check.Itoa(tokens*ranks)+" last", "%v", t.Float64s())
		return
	}
	for i := 1; i < n; i++ {
		length := check.Element(t, i) - check.Element(t, i-1)
		if length < 0 {
			c.Fail(name, "values that do not fall", "%v", t.Float64s())
		}
		if ranks > 1 && length%(2*ranks) != 0 {
			c.Fail(name, "sequence lengths that are multiples of 2·cp_size", "%v", t.Float64s())
		}
	}
}
