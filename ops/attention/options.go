package attention

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// BiasType says what is added to the scores of attention.
type BiasType uint8

// The bias types, with TransformerEngine's numbers.
const (
	NoBias        BiasType = iota
	PreScaleBias           // S = scale · (Q·Kᵀ + bias)
	PostScaleBias          // S = scale · Q·Kᵀ + bias
	ALiBi                  // S = scale · Q·Kᵀ − slope · |distance of the key from the diagonal|
)

// String returns the bias type in TransformerEngine's spelling.
func (b BiasType) String() string {
	if b > ALiBi {
		return fmt.Sprintf("bias_type(%d)", uint8(b))
	}
	return [...]string{"no_bias", "pre_scale_bias", "post_scale_bias", "alibi"}[b]
}

// SoftmaxType says what the softmax of attention adds to its denominator.
type SoftmaxType uint8

// The softmax types, with TransformerEngine's numbers.
const (
	VanillaSoftmax   SoftmaxType = iota // Z = Σ exp(S)
	OffByOneSoftmax                     // Z = Σ exp(S) + 1
	LearnableSoftmax                    // Z = Σ exp(S) + exp(softmax_offset[h])
)

// String returns the softmax type in TransformerEngine's spelling.
func (s SoftmaxType) String() string {
	if s > LearnableSoftmax {
		return fmt.Sprintf("softmax_type(%d)", uint8(s))
	}
	return [...]string{"vanilla", "off-by-one", "learnable"}[s]
}

// WindowSize limits the keys that a query sees to a band around its diagonal. The zero value sets
// no limit.
type WindowSize struct {
	left, right int
	set         bool
}

// Window returns the window of left keys before the diagonal, the key on it, and right keys after
// it; −1 means all of them.
func Window(left, right int) WindowSize { return WindowSize{left: left, right: right, set: true} }

// Bounds returns how many keys before and after the diagonal are seen; −1 means all.
func (w WindowSize) Bounds() (left, right int) {
	if !w.set {
		return -1, -1
	}
	return w.left, w.right
}

// MarshalJSON writes the two bounds as a list, null for no window.
func (w WindowSize) MarshalJSON() ([]byte, error) {
	if !w.set {
		return []byte("null"), nil
	}
	return json.Marshal([2]int{w.left, w.right})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (w *WindowSize) UnmarshalJSON(text []byte) error {
	var bounds *[2]int
	if err := json.Unmarshal(text, &bounds); err != nil || bounds == nil {
		*w = WindowSize{}
		return err
	}
	*w = Window(bounds[0], bounds[1])
	return nil
}

// AttnOptions are the less common arguments of attention. The zero value changes nothing.
//
// Key j lies on the diagonal of query i when j = i, or with a bottom right diagonal when j = i +
// l_kv − l_q, where l_q and l_kv are the lengths of the sequence. With a window (l, r) the query
// sees the keys from l before to r after the diagonal, except those that the mask type hides.
//
// ALiBi without slopes uses those of Press et al. 2022, arXiv:2108.12409: with n the largest power
// of two ≤ h, slope[k] = 2^(−8(k+1)/n) for k < n, then 2^(−4(2(k−n)+1)/n).
//
// A soft cap c replaces the scaled product s of a query and a key, after a PreScaleBias and before
// any other, by c·tanh(s/c).
//
// Dropout keeps probability n = ((b·h + head)·s_q + i)·s_kv + j, where s_q and s_kv are the lengths
// of the axes of Q and K, when random.Bits(rng_seed, rng_offset, n) ≥ p_dropout · 2³². It
// multiplies kept probabilities by 1/(1−p_dropout) and the others by 0.
type AttnOptions struct {
	AttentionMask       *tensor.Tensor          `op:"0 attention_mask read bool ?"`      // true hides; [b, h, s_q, s_kv] or 1 for any of them; ArbitraryMask only
	CuSeqlensQ          *tensor.Tensor          `op:"1 cu_seqlens_q read i32 ?"`         // [b+1]: entry b is the total length of the sequences before b; padding masks only
	CuSeqlensKV         *tensor.Tensor          `op:"2 cu_seqlens_kv read i32 ?"`        // [b+1]
	CuSeqlensQPadded    *tensor.Tensor          `op:"3 cu_seqlens_q_padded read i32 ?"`  // [b+1]: where each sequence begins in a THD tensor with gaps, nil without gaps
	CuSeqlensKVPadded   *tensor.Tensor          `op:"4 cu_seqlens_kv_padded read i32 ?"` // [b+1], given when CuSeqlensQPadded is
	WindowSize          WindowSize              `op:"5 window_size"`
	BottomRightDiagonal opregistry.OptionalBool `op:"6 bottom_right_diagonal"` // by default, whether the mask type is one of the bottom right
	BiasType            BiasType                `op:"7 bias_type"`
	Bias                *tensor.Tensor          `op:"8 bias read =Q ?"`          // [b, h, s_q, s_kv] or 1 for any of them; not with THD
	AlibiSlopes         *tensor.Tensor          `op:"9 alibi_slopes read f32 ?"` // [h] or [b, h]; with ALiBi, may be nil
	SoftmaxType         SoftmaxType             `op:"10 softmax_type"`
	SoftmaxOffset       *tensor.Tensor          `op:"11 softmax_offset read f32 ?"` // h elements; with LearnableSoftmax
	PDropout            float32                 `op:"12 p_dropout [0,1) was=pdropout"`
	RNGSeed             uint64                  `op:"13 rng_seed"`
	RNGOffset           uint64                  `op:"14 rng_offset"`
	Softcap             float32                 `op:"15 softcap"` // the largest magnitude of scores, 0 for any; from 2⁻¹⁰⁰ to 2¹⁰⁰
}

// BottomRight reports whether the diagonal of the call ends at the last query and the last key of a
// sequence.
func (a *FusedAttnFwdArgs) BottomRight() bool {
	return a.BottomRightDiagonal.Or(a.AttnMaskType.bottomRight())
}

// Sequence is the part of an attention call that belongs to one sequence: the rows of its first
// query and key and its numbers of queries and keys. Rows are counted within the batch entry or,
// with THD, among all tokens.
type Sequence struct{ FirstQ, LenQ, FirstKV, LenKV int }

// Sequence returns the part of the call that belongs to sequence b.
func (a *FusedAttnFwdArgs) Sequence(b int) Sequence {
	d := a.Dims()
	s := Sequence{LenQ: d.SeqQ, LenKV: d.SeqKV}
	if a.AttnMaskType.Padding() {
		s.LenQ = check.Element(a.CuSeqlensQ, b+1) - check.Element(a.CuSeqlensQ, b)
		s.LenKV = check.Element(a.CuSeqlensKV, b+1) - check.Element(a.CuSeqlensKV, b)
	}
	switch {
	case a.QKVFormat != THD:
	case a.CuSeqlensQPadded != nil:
		s.FirstQ, s.FirstKV = check.Element(a.CuSeqlensQPadded, b), check.Element(a.CuSeqlensKVPadded, b)
	default:
		s.FirstQ, s.FirstKV = check.Element(a.CuSeqlensQ, b), check.Element(a.CuSeqlensKV, b)
	}
	return s
}

// sequences checks the cumulative lengths. It reports whether Dims may be called.
func sequences(c *opregistry.Check, a *FusedAttnFwdArgs) bool {
	if a.QKVFormat == THD && !a.AttnMaskType.Padding() {
		c.Fail("attn_mask_type", "a padding mask with thd", "%v", a.AttnMaskType)
	}
	for _, x := range [...]check.Named{{Name: "cu_seqlens_q_padded", Tensor: a.CuSeqlensQPadded}, {Name: "cu_seqlens_kv_padded", Tensor: a.CuSeqlensKVPadded}} {
		if c.OK() && x.Tensor != nil && a.QKVFormat != THD {
			c.Fail(x.Name, "nil unless qkv_format is thd", "%v", x.Tensor)
		}
	}
	if !a.AttnMaskType.Padding() {
		for _, x := range [...]check.Named{{Name: "cu_seqlens_q", Tensor: a.CuSeqlensQ}, {Name: "cu_seqlens_kv", Tensor: a.CuSeqlensKV}} {
			if c.OK() && x.Tensor != nil {
				c.Fail(x.Name, "nil unless attn_mask_type is one with padding", "%v", x.Tensor)
			}
		}
		return c.OK()
	}
	rising(c, "cu_seqlens_q", a.CuSeqlensQ)
	rising(c, "cu_seqlens_kv", a.CuSeqlensKV)
	if !c.OK() {
		return false
	}
	d := a.Dims()
	c.Elements("cu_seqlens_q", a.CuSeqlensQ, d.Batch+1, "one per batch and one more")
	c.Elements("cu_seqlens_kv", a.CuSeqlensKV, d.Batch+1, "one per batch and one more")
	if a.QKVFormat != THD {
		for b := 0; c.OK() && b < d.Batch; b++ {
			if s := a.Sequence(b); s.LenQ > d.SeqQ || s.LenKV > d.SeqKV {
				c.Fail("cu_seqlens", "lengths of at most "+check.Itoa(d.SeqQ)+" queries and "+check.Itoa(d.SeqKV)+" keys", "%d and %d", s.LenQ, s.LenKV)
			}
		}
		return c.OK()
	}
	packed(c, check.Named{Name: "cu_seqlens_q", Tensor: a.CuSeqlensQ}, check.Named{Name: "cu_seqlens_q_padded", Tensor: a.CuSeqlensQPadded}, d.SeqQ, a.CuSeqlensKVPadded != nil)
	packed(c, check.Named{Name: "cu_seqlens_kv", Tensor: a.CuSeqlensKV}, check.Named{Name: "cu_seqlens_kv_padded", Tensor: a.CuSeqlensKVPadded}, d.SeqKV, a.CuSeqlensQPadded != nil)
	return c.OK()
}

// packed checks that the sequences of a THD tensor lie within its tokens and do not overlap.
func packed(c *opregistry.Check, lengths, starts check.Named, tokens int, padded bool) {
	if !c.OK() {
		return
	}
	last := lengths.Tensor.NumElements() - 1
	if starts.Tensor == nil {
		if padded {
			c.Fail(starts.Name, "a tensor, as for the other of q and kv", "nil")
		} else if n := check.Element(lengths.Tensor, last); n > tokens {
			c.Fail(lengths.Name, "at most "+check.Itoa(tokens)+" tokens", "%d", n)
		}
		return
	}
	rising(c, starts.Name, starts.Tensor)
	c.Elements(starts.Name, starts.Tensor, last+1, "as many as lengths")
	for b := 0; c.OK() && b < last; b++ {
		if capacity := check.Element(starts.Tensor, b+1) - check.Element(starts.Tensor, b); check.Element(lengths.Tensor, b+1)-check.Element(lengths.Tensor, b) > capacity {
			c.Fail(starts.Name, "enough tokens for each sequence", "%d tokens for sequence %d", capacity, b)
		}
	}
	if c.OK() && check.Element(starts.Tensor, last) > tokens {
		c.Fail(starts.Name, "at most "+check.Itoa(tokens)+" tokens", "%d", check.Element(starts.Tensor, last))
	}
}

// rising requires cumulative lengths: a vector of i32 that begins with 0 and never falls.
func rising(c *opregistry.Check, name string, t *tensor.Tensor) {
	if !c.Given(name, t) || !c.Rank(name, t, 1) {
		return
	}
	t = check.Host(t)
	if t.NumElements() == 0 || check.Element(t, 0) != 0 {
		c.Fail(name, "0 first", "%v", t.Float64s())
	}
	for i := 1; c.OK() && i < t.NumElements(); i++ {
		if check.Element(t, i) < check.Element(t, i-1) {
			c.Fail(name, "values that do not fall", "%v", t.Float64s())
		}
	}
}

// checkOptions checks AttnOptions except for the lengths of the sequences.
func checkOptions(c *opregistry.Check, a *FusedAttnFwdArgs, d AttnDims) {
	if !c.OK() || a.AttnOptions == (AttnOptions{}) && a.AttnMaskType != ArbitraryMask {
		return
	}
	if left, right := a.WindowSize.Bounds(); left < -1 || right < -1 {
		c.Fail("window_size", "sizes >= -1", "(%d, %d)", left, right)
	}
	if a.AttnMaskType.Causal() && a.BottomRight() != a.AttnMaskType.bottomRight() {
		c.Fail("bottom_right_diagonal", "that of "+a.AttnMaskType.String()+", or nothing", "%v", a.BottomRight())
	}
	if a.AttnMaskType == ArbitraryMask {
		if c.Given("attention_mask", a.AttentionMask) {
			scoreShape(c, "attention_mask", a.AttentionMask, d)
		}
	} else if a.AttentionMask != nil {
		c.Fail("attention_mask", "nil unless attn_mask_type is arbitrary", "%v", a.AttentionMask)
	}
	bias(c, a, d)
	if s := a.Softcap; s != 0 && !(s >= 0x1p-100 && s <= 0x1p100) {
		c.Fail("softcap", "0, or a number from 2⁻¹⁰⁰ to 2¹⁰⁰", "%v", s)
	}
	if a.SoftmaxType > LearnableSoftmax {
		c.Fail("softmax_type", "vanilla, off-by-one or learnable", "%v", a.SoftmaxType)
	}
	if a.SoftmaxType == LearnableSoftmax {
		if c.Given("softmax_offset", a.SoftmaxOffset) {
			c.Elements("softmax_offset", a.SoftmaxOffset, d.Heads, "one per head")
		}
	} else if a.SoftmaxOffset != nil {
		c.Fail("softmax_offset", "nil unless softmax_type is learnable", "%v", a.SoftmaxOffset)
	}
}

func bias(c *opregistry.Check, a *FusedAttnFwdArgs, d AttnDims) {
	switch a.BiasType {
	case NoBias, ALiBi:
		if a.Bias != nil {
			c.Fail("bias", "nil with "+a.BiasType.String(), "%v", a.Bias)
		}
	case PreScaleBias, PostScaleBias:
		if a.QKVFormat == THD {
			c.Fail("bias_type", "no_bias or alibi with thd", "%v", a.BiasType)
		}
		if c.Given("bias", a.Bias) {
			scoreShape(c, "bias", a.Bias, d)
		}
	default:
		c.Fail("bias_type", "no_bias, pre_scale_bias, post_scale_bias or alibi", "%v", a.BiasType)
	}
	if a.AlibiSlopes == nil {
		return
	}
	if a.BiasType != ALiBi {
		c.Fail("alibi_slopes", "nil unless bias_type is alibi", "%v", a.AlibiSlopes)
	}
	if c.OK() {
		shape := a.AlibiSlopes.Shape()
		if !shape.Equal([]int{d.Heads}) && !shape.Equal([]int{d.Batch, d.Heads}) {
			c.Fail("alibi_slopes", fmt.Sprintf("[%d] or [%d %d]", d.Heads, d.Batch, d.Heads), "%v", a.AlibiSlopes)
		}
	}
}

// scoreShape requires axes with the lengths of those of the scores, or 1.
func scoreShape(c *opregistry.Check, name string, t *tensor.Tensor, d AttnDims) {
	if !c.Rank(name, t, 4) {
		return
	}
	for axis, n := range [...]int{d.Batch, d.Heads, d.SeqQ, d.SeqKV} {
		if got := t.Shape()[axis]; got != 1 && got != n {
			c.Fail(name, fmt.Sprintf("[%d %d %d %d] or 1 for any axis", d.Batch, d.Heads, d.SeqQ, d.SeqKV), "%v", t)
		}
	}
}

// optionGradients checks the gradients of the tensors in AttnOptions.
func optionGradients(c *opregistry.Check, a *FusedAttnBwdArgs) {
	if a.DBias != nil {
		if a.Bias == nil {
			c.Fail("dbias", "nil without bias", "%v", a.DBias)
		}
		if c.OK() {
			c.SameShape("dbias", a.DBias, "bias", a.Bias)
		}
	}
	if a.DSoftmaxOffset != nil {
		if a.SoftmaxOffset == nil {
			c.Fail("dsoftmax_offset", "nil without softmax_offset", "%v", a.DSoftmaxOffset)
		}
		if c.OK() {
			c.Elements("dsoftmax_offset", a.DSoftmaxOffset, a.SoftmaxOffset.NumElements(), "one per head")
		}
	}
}

// DefaultAlibiSlopes returns the slopes that ALiBi uses for a number of heads when none are given;
// AttnOptions documents them.
func DefaultAlibiSlopes(heads int) []float32 {
	slopes := make([]float32, heads)
	for k := range slopes {
		slopes[k] = AlibiSlope(k, heads)
	}
	return slopes
}

// AlibiSlope returns the slope of one head of DefaultAlibiSlopes.
func AlibiSlope(head, heads int) float32 {
	n := 1
	for 2*n <= heads {
		n *= 2
	}
	exponent := -8 * float64(head+1) / float64(n)
	if head >= n {
		exponent = -4 * float64(2*(head-n)+1) / float64(n)
	}
	return float32(math.Exp2(exponent))
}
