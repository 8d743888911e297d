package attention

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// THDGetPartitionedIndicesArgs are the arguments of THDGetPartitionedIndices.
type THDGetPartitionedIndicesArgs struct {
	CuSeqlens *tensor.Tensor `op:"0 cu_seqlens read i32"`
	WorldSize int            `op:"1 world_size [1,2147483647]"`
	Rank      int            `op:"2 rank"`
	Output    *tensor.Tensor `op:"3 output write i32 [n]"`
}

// THDGetPartitionedIndices lists the tokens that a rank of context parallelism owns.
var THDGetPartitionedIndices = opregistry.NewOp("thd_get_partitioned_indices", opregistry.Schema[THDGetPartitionedIndicesArgs]{
	Doc: "tokens of packed sequences that a rank owns",
	Formula: `
		thd_get_partitioned_indices lists the tokens that a rank of context parallelism owns. Each
		packed sequence is cut into 2·world_size chunks of equal length, and rank r owns chunks r
		and 2·world_size−1−r:

		  output = tokens of chunk r, then of the other chunk, sequence by sequence

		A sequence whose length is not a multiple of 2·world_size is an argument error. Source:
		TransformerEngine 2.14.

		Arguments:

		  cu_seqlens  [b+1]; the last is TransformerEngine's total_tokens
		  output      [tokens / world_size]

		Example:

		  cu_seqlens=i32[0 4 8] world_size=2 rank=0 → output=i32[0 3 4 7]
	`,
	Tolerance: opregistry.Exact("integers"),
	Check: func(c *opregistry.Check, a *THDGetPartitionedIndicesArgs) {
		rising(c, "cu_seqlens", a.CuSeqlens)
		if c.OK() && (a.Rank < 0 || a.Rank >= a.WorldSize) {
			c.Fail("rank", "0 <= rank < world_size", "rank %d of world_size %d", a.Rank, a.WorldSize)
		}
		multiples(c, "cu_seqlens", a.CuSeqlens, 2*a.WorldSize)
		if c.OK() {
			c.Elements("output", a.Output, lastLength(a.CuSeqlens)/a.WorldSize, "one per token of the rank")
		}
	},
})

// THDReadHalfTensorArgs are the arguments of THDReadHalfTensor.
type THDReadHalfTensorArgs struct {
	Tensor    *tensor.Tensor `op:"0 tensor read any"`
	CuSeqlens *tensor.Tensor `op:"1 cu_seqlens read i32"`
	HalfIdx   int            `op:"2 half_idx"`
	Half      *tensor.Tensor `op:"3 half write =tensor"`
}

// THDReadHalfTensor copies the first or the second half of each packed sequence.
var THDReadHalfTensor = opregistry.NewOp("thd_read_half_tensor", opregistry.Schema[THDReadHalfTensorArgs]{
	Doc: "first or second halves of packed sequences",
	Formula: `
		thd_read_half_tensor copies the first or the second half of each packed sequence:

		  half[(start(b) / 2) + i] = tensor[start(b) + half_idx·len(b)/2 + i] for i < len(b)/2

		Tokens of half that belong to no sequence become 0. Tokens are copied bit for bit, in any
		dtype. A sequence of odd length is an argument error. Source: TransformerEngine 2.14.

		Arguments:

		  tensor      [t, h, d] or [n, t, h, d]
		  cu_seqlens  [b+1]
		  half_idx    0 for the first half of each sequence, 1 for the second
		  half        [t/2, h, d] or [n, t/2, h, d]

		Example:

		  tensor=[[[1]] [[2]] [[3]] [[4]]] cu_seqlens=i32[0 2 4] half_idx=1 → half=[[[2]] [[4]]]
	`,
	Tolerance: opregistry.Exact("a copy"),
	Check: func(c *opregistry.Check, a *THDReadHalfTensorArgs) {
		tokens(c, "tensor", a.Tensor, a.CuSeqlens)
		perStep(c, "half", a.Half, "tensor", a.Tensor, true)
		if a.HalfIdx != 0 && a.HalfIdx != 1 {
			c.Fail("half_idx", "0 or 1", "%d", a.HalfIdx)
		}
	},
})

// THDReadSecondHalfLSEArgs are the arguments of THDReadSecondHalfLSE.
type THDReadSecondHalfLSEArgs struct {
	LSE       *tensor.Tensor `op:"0 lse read f32"`
	CuSeqlens *tensor.Tensor `op:"1 cu_seqlens read i32"`
	LSEPacked bool           `op:"2 lse_packed"`
	HalfLSE   *tensor.Tensor `op:"3 half_lse write f32"`
}

// THDReadSecondHalfLSE copies the log-sum-exps of the second half of each packed sequence.
var THDReadSecondHalfLSE = opregistry.NewOp("thd_read_second_half_lse", opregistry.Schema[THDReadSecondHalfLSEArgs]{
	Doc: "log-sum-exps of the second halves of packed sequences",
	Formula: `
		thd_read_second_half_lse copies the log-sum-exps of the second half of each packed sequence:

		  half_lse[b,h,i] = lse[b,h,len(b)/2+i]                          for i < len(b)/2
		  half_lse[h,start(b)/2+i] = lse[h,start(b)+len(b)/2+i]          when packed

		Other elements of half_lse are 0. A sequence of odd length is an argument error. Source:
		TransformerEngine 2.14, whose second_half_lse_seqlen is the last axis of half_lse.

		Arguments:

		  lse         [b, h, s], or [h, t] when packed
		  cu_seqlens  [b+1]
		  half_lse    [b, h, s/2], or [h, at least t/2] when packed

		Example:

		  lse=[[1 2 3 4]] cu_seqlens=i32[0 2 4] lse_packed=1 → half_lse=[[2 4]]
	`,
	Tolerance: opregistry.Exact("a copy"),
	Check: func(c *opregistry.Check, a *THDReadSecondHalfLSEArgs) {
		lse(c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(c, "half_lse", a.HalfLSE, a.LSE, a.LSEPacked, true)
	},
})

// THDSecondHalfLSECorrectionArgs are the arguments of THDSecondHalfLSECorrection.
type THDSecondHalfLSECorrectionArgs struct {
	LSE        *tensor.Tensor `op:"0 lse update f32"`
	LSEPerStep *tensor.Tensor `op:"1 lse_per_step read f32"`
	CuSeqlens  *tensor.Tensor `op:"2 cu_seqlens read i32"`
	LSEPacked  bool           `op:"3 lse_packed"`
}

// THDSecondHalfLSECorrection adds the contribution of a step to the log-sum-exps of the second
// half of each packed sequence.
var THDSecondHalfLSECorrection = opregistry.NewOp("thd_second_half_lse_correction", opregistry.Schema[THDSecondHalfLSECorrectionArgs]{
	Doc: "adds a step to the log-sum-exps of the second halves of packed sequences",
	Formula: `
		thd_second_half_lse_correction adds the contribution of a step to the log-sum-exps of the
		second half of each packed sequence:

		  lse = ln(exp(lse) + exp(lse_per_step)) = m + ln(1 + exp(n − m)), m ≥ n

		Elements are matched as in thd_read_second_half_lse. Two equal infinities give the same
		infinity. lse is updated in the second halves and unchanged elsewhere. Source:
		TransformerEngine 2.14.

		Arguments:

		  lse           [b, h, s], or [h, t] when packed
		  lse_per_step  [b, h, s/2], or [h, at least t/2] when packed
		  cu_seqlens    [b+1]

		Example:

		  lse=[[1 2 3 4]] lse_per_step=[[2 1]] cu_seqlens=i32[0 2 4] lse_packed=1 → lse=[[1 2.693 3
		    4.049]]
	`,
	Tolerance: opregistry.Arithmetic(1e-6, 1e-6, "an exponential and a logarithm of 2 ulp"),
	Check: func(c *opregistry.Check, a *THDSecondHalfLSECorrectionArgs) {
		lse(c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(c, "lse_per_step", a.LSEPerStep, a.LSE, a.LSEPacked, true)
	},
})

// THDOutCorrectionArgs are the arguments of THDOutCorrection.
type THDOutCorrectionArgs struct {
	Out            *tensor.Tensor `op:"0 out update compute [t h d]"`
	OutPerStep     *tensor.Tensor `op:"1 out_per_step read =out"`
	LSE            *tensor.Tensor `op:"2 lse read f32"`
	LSEPerStep     *tensor.Tensor `op:"3 lse_per_step read f32"`
	CuSeqlens      *tensor.Tensor `op:"4 cu_seqlens read i32"`
	OnlySecondHalf bool           `op:"5 only_second_half"`
	LSEPacked      bool           `op:"6 lse_packed"`
}

// THDOutCorrection adds the contribution of a step of attention to its output.
var THDOutCorrection = opregistry.NewOp("thd_out_correction", opregistry.Schema[THDOutCorrectionArgs]{
	Doc: "adds a step to the attention of packed sequences",
	Formula: `
		thd_out_correction adds the contribution of a step of attention to its output:

		  out += out_per_step · exp(lse_per_step − lse)

		for each token and head of packed sequences, or of their second halves. An element of 0 in
		out_per_step adds nothing, whatever the factor. out is updated there and unchanged
		elsewhere; arithmetic is in f32 or better, rounded once. Source: TransformerEngine 2.14.

		Arguments:

		  out_per_step  [t, h, d], or [t/2, h, d] with only_second_half
		  lse           [b, h, s], or [h, at least t] when packed
		  lse_per_step  like lse; half as long with only_second_half
		  cu_seqlens    [b+1]

		Example:

		  out=[[[1]] [[2]]] out_per_step=[[[10]] [[20]]] lse=[[1 2]] lse_per_step=[[0 2]]
		    cu_seqlens=i32[0 2] lse_packed=1 → out=[[[4.679]] [[22]]]
	`,
	Tolerance: opregistry.Arithmetic(1e-6, 5e-6, "an exponential of up to e⁶ whose exponent carries 6·2⁻²³"),
	Check: func(c *opregistry.Check, a *THDOutCorrectionArgs) {
		tokens(c, "out", a.Out, a.CuSeqlens)
		perStep(c, "out_per_step", a.OutPerStep, "out", a.Out, a.OnlySecondHalf)
		lse(c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(c, "lse_per_step", a.LSEPerStep, a.LSE, a.LSEPacked, a.OnlySecondHalf)
		heads, axis := a.Out.Shape()[1], 1
		if a.LSEPacked {
			axis = 0
		}
		if c.OK() && a.LSE.Shape()[axis] != heads {
			c.Fail("lse", "the "+check.Itoa(heads)+" heads of out", "%v", a.LSE)
		}
	},
})

// Correction says what a step does to one half of a gradient.
type Correction uint8

// The corrections.
const (
	CorrectionUnspecified Correction = iota
	NoCorrection                     // the half is unchanged
	AddCorrection                    // the step is added
	CopyCorrection                   // the step replaces the half
)

// String returns the correction in TransformerEngine's spelling.
func (x Correction) String() string {
	if x < NoCorrection || x > CopyCorrection {
		return fmt.Sprintf("correction(%d)", uint8(x))
	}
	return [...]string{"none", "add", "copy"}[x-NoCorrection]
}

// THDGradCorrectionArgs are the arguments of THDGradCorrection.
type THDGradCorrectionArgs struct {
	Grad        *tensor.Tensor `op:"0 grad update compute"`
	GradPerStep *tensor.Tensor `op:"1 grad_per_step read =grad"`
	CuSeqlens   *tensor.Tensor `op:"2 cu_seqlens read i32"`
	FirstHalf   Correction     `op:"3 first_half"`
	SecondHalf  Correction     `op:"4 second_half"`
}

// THDGradCorrection adds the contribution of a step to the halves of the gradient of each packed
// sequence, or copies it there.
var THDGradCorrection = opregistry.NewOp("thd_grad_correction", opregistry.Schema[THDGradCorrectionArgs]{
	Doc: "adds a step to the gradient of halves of packed sequences",
	Formula: `
		thd_grad_correction adds the contribution of a step to the halves of the gradient of each
		packed sequence, or copies it there:

		  grad += grad_per_step    add
		  grad  = grad_per_step    copy

		When one half is unchanged, grad_per_step holds the other halves one after the other. grad
		is updated, and unchanged where it belongs to no sequence; sums are rounded once. A sequence
		of odd length is an argument error. Source: TransformerEngine 2.14.

		Arguments:

		  grad           [t, h, d] or [n, t, h, d]
		  grad_per_step  like grad; half its tokens when one of the halves is unchanged
		  cu_seqlens     [b+1]
		  second_half    must differ from first_half

		Example:

		  grad=[[[1]] [[2]]] grad_per_step=[[[10]] [[20]]] cu_seqlens=i32[0 2] first_half=add
		    second_half=copy → grad=[[[11]] [[20]]]
	`,
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24}, Reason: "one rounded sum, as residual_add"},
	Check: func(c *opregistry.Check, a *THDGradCorrectionArgs) {
		correction(c, "first_half", a.FirstHalf)
		correction(c, "second_half", a.SecondHalf)
		if c.OK() && a.FirstHalf == a.SecondHalf {
			c.Fail("second_half", "another correction than first_half", "%v", a.SecondHalf)
		}
		tokens(c, "grad", a.Grad, a.CuSeqlens)
		perStep(c, "grad_per_step", a.GradPerStep, "grad", a.Grad, a.FirstHalf == NoCorrection || a.SecondHalf == NoCorrection)
	},
})

func correction(c *opregistry.Check, name string, x Correction) {
	if c.OK() && (x < NoCorrection || x > CopyCorrection) {
		c.Fail(name, "none, add or copy", "%v", x)
	}
}

// multiples requires sequence lengths that are multiples of n.
func multiples(c *opregistry.Check, name string, cu *tensor.Tensor, n int) {
	for i := 1; c.OK() && i < cu.NumElements(); i++ {
		if length := check.Element(cu, i) - check.Element(cu, i-1); length%n != 0 {
			c.Fail(name, "sequence lengths that are multiples of "+check.Itoa(n), "%d", length)
		}
	}
}

func lastLength(cu *tensor.Tensor) int { return check.Element(cu, cu.NumElements()-1) }

// tokens requires [t, h, d] or [n, t, h, d] and sequences of even length within t.
func tokens(c *opregistry.Check, name string, t, cu *tensor.Tensor) {
	if n := len(t.Shape()); c.OK() && n != 3 && n != 4 {
		c.Fail(name, "3 or 4 axes", "%v", t)
	}
	rising(c, "cu_seqlens", cu)
	if !c.OK() {
		return
	}
	multiples(c, "cu_seqlens", cu, 2)
	if tokens := t.Shape()[len(t.Shape())-3]; lastLength(cu) > tokens {
		c.Fail("cu_seqlens", "at most the "+check.Itoa(tokens)+" tokens of "+name, "%d", lastLength(cu))
	}
}

// perStep requires the shape of another tensor, but with half its tokens.
func perStep(c *opregistry.Check, name string, t *tensor.Tensor, otherName string, other *tensor.Tensor, half bool) {
	if !c.Rank(name, t, len(other.Shape())) {
		return
	}
	for axis, n := range other.Shape() {
		if half && axis == len(other.Shape())-3 {
			n /= 2
		}
		if t.Shape()[axis] != n {
			c.Fail(name, check.Itoa(n)+" in axis "+check.Itoa(axis)+", as "+otherName+" has it", "%v", t)
		}
	}
}

// lse requires log-sum-exps of sequences of even length.
func lse(c *opregistry.Check, name string, t, cu *tensor.Tensor, packed bool) {
	rising(c, "cu_seqlens", cu)
	rank := 3
	if packed {
		rank = 2
	}
	if !c.Rank(name, t, rank) {
		return
	}
	multiples(c, "cu_seqlens", cu, 2)
	shape := t.Shape()
	if packed {
		if last := lastLength(cu); last > shape[1] {
			c.Fail("cu_seqlens", "at most the "+check.Itoa(shape[1])+" tokens of "+name, "%d", last)
		}
		return
	}
	c.Elements("cu_seqlens", cu, shape[0]+1, "one per batch and one more")
	for b := 0; c.OK() && b < shape[0]; b++ {
		if n := check.Element(cu, b+1) - check.Element(cu, b); n > shape[2] {
			c.Fail("cu_seqlens", "sequences of at most the "+check.Itoa(shape[2])+" positions of "+name, "%d", n)
		}
	}
}

// lsePerStep requires the shape of lse, but with half its positions; packed ones may have more.
func lsePerStep(c *opregistry.Check, name string, t, lse *tensor.Tensor, packed, half bool) {
	if !c.OK() || !c.Rank(name, t, len(lse.Shape())) {
		return
	}
	last := len(lse.Shape()) - 1
	n := lse.Shape()[last]
	if half {
		n /= 2
	}
	if got := t.Shape()[last]; got < n || got > n && !packed {
		c.Fail(name, check.Itoa(n)+" positions", "%v", t)
	}
	for axis := range last {
		if t.Shape()[axis] != lse.Shape()[axis] {
			c.Fail(name, check.Itoa(lse.Shape()[axis])+" in axis "+check.Itoa(axis)+", as lse", "%v", t)
		}
	}
}
