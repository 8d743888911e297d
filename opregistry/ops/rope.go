package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// QKVFormat is the order of the axes of a query, key or value tensor.
type QKVFormat uint8

// The formats: s sequence, b batch, h heads, d head dimension, t packed tokens.
const (
	QKVFormatUnspecified QKVFormat = iota
	SBHD
	BSHD
	THD
)

// String returns the format in TransformerEngine's spelling.
func (f QKVFormat) String() string {
	switch f {
	case SBHD:
		return "sbhd"
	case BSHD:
		return "bshd"
	case THD:
		return "thd"
	default:
		return fmt.Sprintf("qkv_format(%d)", uint8(f))
	}
}

// FusedRopeArgs are the arguments of FusedRopeForward and FusedRopeBackward.
type FusedRopeArgs struct {
	Input          *tensor.Tensor // x, or the gradient of y: [s b h d], [b s h d] or [t h d]
	Freqs          *tensor.Tensor // f32 [s_max, .., d2] angles in radians, d2 even and <= d
	StartPositions *tensor.Tensor // i32 [b], nil for 0
	Output         *tensor.Tensor // y, or the gradient of x: shape of the input
	QKVFormat      QKVFormat
	Interleaved    bool
	CuSeqlens      *tensor.Tensor // i32 [b+1], for THD only
	CPSize, CPRank int            // context parallelism; size 0 means 1
}

// FusedRopeForward rotates pairs of the first d2 elements of each head by the angles of their
// position and copies the other elements:
//
//	y = x·cos θ + rot(x)·sin θ      θ = freqs[position, ·]
//
// Pairs are (i, i+d2/2) with rot(x) = [−x₂, x₁], or with Interleaved (2i, 2i+1) with rot =
// [−x_{2i+1}, x_{2i}]; each element uses the θ of its own index. The position is the index in the
// sequence plus start_positions[b]; with THD it restarts at each sequence of cu_seqlens. With
// CPSize > 1 the first half of the local sequence is chunk CPRank of 2·CPSize and the second half
// is chunk 2·CPSize−1−CPRank; cu_seqlens counts the tokens of the whole sequences, of which x holds
// 1/CPSize each, so that it is the same on every rank.
//
// x and freqs are read, y is written; y may be x. x and y have one compute dtype and any strides;
// cos, sin and arithmetic are in f32. Source: Su et al. 2021, arXiv:2104.09864; TransformerEngine
// 2.14, fused_rope.
var FusedRopeForward = newRope("fused_rope_forward", "input", "rotary position embedding")

// FusedRopeBackward is the gradient of FusedRopeForward: the transposed rotation,
//
//	dx_i = dy_i·cos θ_i + rotᵀ(dy·sin θ)_i
//
// which takes the sine at the partner's index. Its operands are those of FusedRopeForward, except
// that Input is the gradient of y and Output that of x.
var FusedRopeBackward = newRope("fused_rope_backward", "output_grads", "gradient of fused_rope_forward")

func newRope(name, input, doc string) *opregistry.Op[FusedRopeArgs] {
	return opregistry.NewOp(name, opregistry.Schema[FusedRopeArgs]{
		Doc:      doc,
		Validate: func(a FusedRopeArgs) error { return validateRope(name, input, a) },
		Lead:     func(a FusedRopeArgs) *tensor.Tensor { return a.Input },
		Operands: func(a FusedRopeArgs) []opregistry.Operand {
			return operands{}.read(input, a.Input).read("freqs", a.Freqs).read("start_positions", a.StartPositions).
				read("cu_seqlens", a.CuSeqlens).write("output", a.Output)
		},
	})
}

func validateRope(name, input string, a FusedRopeArgs) error {
	c := check{op: name}
	if !c.compute(input, a.Input) || !c.dtype("freqs", a.Freqs, tensor.F32) || !c.minRank("freqs", a.Freqs, 2) || !c.compute("output", a.Output) {
		return c.err
	}
	c.sameDType("output", a.Output, input, a.Input)
	c.sameShape("output", a.Output, input, a.Input)
	c.disjointOrSame("output", a.Output, input, a.Input)
	c.disjointFrom("output", a.Output, named{"freqs", a.Freqs}, named{"start_positions", a.StartPositions}, named{"cu_seqlens", a.CuSeqlens})
	shape, seq, batch := a.Input.Shape(), 0, 0
	switch a.QKVFormat {
	case SBHD:
		if c.rank(input, a.Input, 4) {
			seq, batch = shape[0], shape[1]
		}
	case BSHD:
		if c.rank(input, a.Input, 4) {
			batch, seq = shape[0], shape[1]
		}
	case THD:
		if c.rank(input, a.Input, 3) && c.dtype("cu_seqlens", a.CuSeqlens, tensor.I32) && c.rank("cu_seqlens", a.CuSeqlens, 1) {
			c.cuSeqlens("cu_seqlens", a.CuSeqlens, shape[0], max(a.CPSize, 1))
			batch = a.CuSeqlens.NumElements() - 1
		}
	default:
		c.fail("qkv_format", "sbhd, bshd or thd", "%v", a.QKVFormat)
	}
	if a.QKVFormat != THD && a.CuSeqlens != nil {
		c.fail("cu_seqlens", "nil unless qkv_format is thd", "%v", a.CuSeqlens)
	}
	if c.err != nil {
		return c.err
	}
	c.angles("freqs", a.Freqs, shape.Cols())
	c.contextParallel(a.CPSize, a.CPRank, input, a.Input, seq)
	c.startPositions(a.StartPositions, batch)
	last, cp := 0, max(a.CPSize, 1)
	for b := 0; c.err == nil && b < batch; b++ {
		length, start := seq*cp, 0
		if a.QKVFormat == THD {
			length = element(a.CuSeqlens, b+1) - element(a.CuSeqlens, b)
		}
		if a.StartPositions != nil {
			start = element(a.StartPositions, b)
		}
		if length > 0 {
			last = max(last, start+length)
		}
	}
	c.positions("freqs", a.Freqs, last)
	return c.err
}

// angles checks the length of the rows of a table of angles for heads of d elements.
func (c *check) angles(name string, freqs *tensor.Tensor, d int) {
	if d2 := freqs.Shape().Cols(); c.err == nil && (d2%2 != 0 || d2 > d) {
		c.fail(name, "an even last axis of at most "+itoa(d), "%v", freqs)
	}
}

// positions checks that a table of angles has rows for n positions.
func (c *check) positions(name string, freqs *tensor.Tensor, n int) {
	if c.err == nil && freqs.NumElements()/max(freqs.Shape().Cols(), 1) < n {
		c.fail(name, "at least "+itoa(n)+" positions", "%v", freqs)
	}
}

// contextParallel checks size and rank, and that a sequence of seq local positions
// can be cut in two.
func (c *check) contextParallel(size, rank int, name string, t *tensor.Tensor, seq int) {
	ranks := max(size, 1)
	if c.err == nil && (size < 0 || rank < 0 || rank >= ranks) {
		c.fail("cp_rank", "0 <= cp_rank < cp_size", "cp_rank %d of cp_size %d", rank, size)
	}
	if c.err == nil && ranks > 1 && seq%2 != 0 {
		c.fail(name, "an even sequence length with cp_size > 1", "%v", t)
	}
}

// startPositions checks the first positions of the sequences, nil for 0.
func (c *check) startPositions(t *tensor.Tensor, batch int) {
	const name = "start_positions"
	if t == nil || !c.dtype(name, t, tensor.I32) || !c.rank(name, t, 1) {
		return
	}
	c.elements(name, t, batch, "one a sequence")
	for b := 0; c.err == nil && b < batch; b++ {
		if start := element(t, b); start < 0 {
			c.fail(name, "positions >= 0", "%d", start)
		}
	}
}

// cuSeqlens checks cumulative lengths of sequences, of whose tokens this rank holds a part: they
// must begin with 0, never fall and end with the tokens of all ranks. With several ranks every
// length must be divisible into two chunks per rank.
func (c *check) cuSeqlens(name string, t *tensor.Tensor, tokens, ranks int) {
	if c.err != nil {
		return
	}
	n := t.NumElements()
	if n == 0 || element(t, 0) != 0 || element(t, n-1) != tokens*ranks {
		c.fail(name, "0 first and "+itoa(tokens*ranks)+" last", "%v", t.Float64s())
		return
	}
	for i := 1; i < n; i++ {
		length := element(t, i) - element(t, i-1)
		if length < 0 {
			c.fail(name, "values that do not fall", "%v", t.Float64s())
		}
		if ranks > 1 && length%(2*ranks) != 0 {
			c.fail(name, "sequence lengths that are multiples of 2·cp_size", "%v", t.Float64s())
		}
	}
}
