package attention

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// THDGetPartitionedIndicesArgs are the arguments of THDGetPartitionedIndices.
type THDGetPartitionedIndicesArgs struct {
	CuSeqlens *tensor.Tensor // i32 [b+1]; the last is TransformerEngine's total_tokens
	WorldSize int
	Rank      int
	Output    *tensor.Tensor // i32 [tokens / world_size]
}

// THDGetPartitionedIndices lists the tokens that a rank of context parallelism owns.
// Each packed sequence is cut into 2·world_size chunks of equal length, and rank r
// owns chunks r and 2·world_size−1−r:
//
//	output = tokens of chunk r, then of the other chunk, sequence by sequence
//
// Cu_seqlens is read, output is written; they are disjoint. A sequence whose length
// is no multiple of 2·world_size is an argument error. Source: TransformerEngine 2.14.
var THDGetPartitionedIndices = opregistry.NewOp("thd_get_partitioned_indices", opregistry.Schema[THDGetPartitionedIndicesArgs]{
	Doc: "tokens of packed sequences that a rank owns",
	Validate: func(a THDGetPartitionedIndicesArgs) error {
		c := check.Call{Op: "thd_get_partitioned_indices"}
		rising(&c, "cu_seqlens", a.CuSeqlens)
		if c.Err == nil && (a.WorldSize < 1 || a.WorldSize > math.MaxInt32) {
			c.Fail("world_size", "a number from 1 to 2³¹−1", "%d", a.WorldSize)
		}
		if c.Err == nil && (a.Rank < 0 || a.Rank >= a.WorldSize) {
			c.Fail("rank", "0 <= rank < world_size", "rank %d of world_size %d", a.Rank, a.WorldSize)
		}
		multiples(&c, "cu_seqlens", a.CuSeqlens, 2*a.WorldSize)
		if c.DType("output", a.Output, tensor.I32) && c.Rank("output", a.Output, 1) {
			c.Elements("output", a.Output, lastLength(a.CuSeqlens)/a.WorldSize, "one a token of the rank")
			c.Disjoint("output", a.Output, "cu_seqlens", a.CuSeqlens)
		}
		return c.Err
	},
	Operands: func(a THDGetPartitionedIndicesArgs) []opregistry.Operand {
		return check.Operands{}.Read("cu_seqlens", a.CuSeqlens).Write("output", a.Output)
	},
})

// THDReadHalfTensorArgs are the arguments of THDReadHalfTensor.
type THDReadHalfTensorArgs struct {
	Tensor    *tensor.Tensor // [t, h, d] or [n, t, h, d]
	CuSeqlens *tensor.Tensor // i32 [b+1]
	HalfIdx   int            // 0 for the first half of each sequence, 1 for the second
	Half      *tensor.Tensor // [t/2, h, d] or [n, t/2, h, d]
}

// THDReadHalfTensor copies the first or the second half of each packed sequence:
//
//	half[(start(b) / 2) + i] = tensor[start(b) + half_idx·len(b)/2 + i] for i < len(b)/2
//
// Tokens of half that belong to no sequence become 0. Tensor and cu_seqlens are read, half is
// written; all are disjoint. Tokens are copied bit for bit, in any dtype. A sequence of odd length
// is an argument error. Source: TransformerEngine 2.14.
var THDReadHalfTensor = opregistry.NewOp("thd_read_half_tensor", opregistry.Schema[THDReadHalfTensorArgs]{
	Doc: "first or second halves of packed sequences",
	Validate: func(a THDReadHalfTensorArgs) error {
		c := check.Call{Op: "thd_read_half_tensor"}
		if c.Given("tensor", a.Tensor) && c.Given("half", a.Half) {
			c.SameDType("half", a.Half, "tensor", a.Tensor)
			tokens(&c, "tensor", a.Tensor, a.CuSeqlens)
			perStep(&c, "half", a.Half, "tensor", a.Tensor, true)
		}
		if c.Err == nil && a.HalfIdx != 0 && a.HalfIdx != 1 {
			c.Fail("half_idx", "0 or 1", "%d", a.HalfIdx)
		}
		c.Apart([]check.Named{{Name: "half", Tensor: a.Half}}, []check.Named{{Name: "tensor", Tensor: a.Tensor}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
		return c.Err
	},
	Operands: func(a THDReadHalfTensorArgs) []opregistry.Operand {
		return check.Operands{}.Read("tensor", a.Tensor).Read("cu_seqlens", a.CuSeqlens).Write("half", a.Half)
	},
})

// THDReadSecondHalfLSEArgs are the arguments of THDReadSecondHalfLSE.
type THDReadSecondHalfLSEArgs struct {
	LSE       *tensor.Tensor // f32 [b, h, s], or [h, t] when packed
	CuSeqlens *tensor.Tensor // i32 [b+1]
	LSEPacked bool
	HalfLSE   *tensor.Tensor // f32 [b, h, s/2], or [h, at least t/2] when packed
}

// THDReadSecondHalfLSE copies the log-sum-exps of the second half of each packed sequence:
//
//	half_lse[b,h,i] = lse[b,h,len(b)/2+i]                          for i < len(b)/2
//	half_lse[h,start(b)/2+i] = lse[h,start(b)+len(b)/2+i]          when packed
//
// Other elements of half_lse are 0. Lse and cu_seqlens are read, half_lse is written;
// all are disjoint. A sequence of odd length is an argument error. Source:
// TransformerEngine 2.14, whose second_half_lse_seqlen is the last axis of half_lse.
var THDReadSecondHalfLSE = opregistry.NewOp("thd_read_second_half_lse", opregistry.Schema[THDReadSecondHalfLSEArgs]{
	Doc: "log-sum-exps of the second halves of packed sequences",
	Validate: func(a THDReadSecondHalfLSEArgs) error {
		c := check.Call{Op: "thd_read_second_half_lse"}
		lse(&c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(&c, "half_lse", a.HalfLSE, a.LSE, a.LSEPacked, true)
		c.Apart([]check.Named{{Name: "half_lse", Tensor: a.HalfLSE}}, []check.Named{{Name: "lse", Tensor: a.LSE}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
		return c.Err
	},
	Operands: func(a THDReadSecondHalfLSEArgs) []opregistry.Operand {
		return check.Operands{}.Read("lse", a.LSE).Read("cu_seqlens", a.CuSeqlens).Write("half_lse", a.HalfLSE)
	},
})

// THDSecondHalfLSECorrectionArgs are the arguments of THDSecondHalfLSECorrection.
type THDSecondHalfLSECorrectionArgs struct {
	LSE        *tensor.Tensor // f32 [b, h, s], or [h, t] when packed
	LSEPerStep *tensor.Tensor // f32 [b, h, s/2], or [h, at least t/2] when packed
	CuSeqlens  *tensor.Tensor // i32 [b+1]
	LSEPacked  bool
}

// THDSecondHalfLSECorrection adds the contribution of a step to the log-sum-exps of the second half
// of each packed sequence:
//
//	lse = ln(exp(lse) + exp(lse_per_step)) = m + ln(1 + exp(n − m)), m ≥ n
//
// Elements are matched as in THDReadSecondHalfLSE. Two equal infinities give the same infinity. Lse
// is updated in the second halves and unchanged elsewhere; lse_per_step and cu_seqlens are read;
// all are disjoint. Source: TransformerEngine 2.14.
var THDSecondHalfLSECorrection = opregistry.NewOp("thd_second_half_lse_correction", opregistry.Schema[THDSecondHalfLSECorrectionArgs]{
	Doc: "adds a step to the log-sum-exps of the second halves of packed sequences",
	Validate: func(a THDSecondHalfLSECorrectionArgs) error {
		c := check.Call{Op: "thd_second_half_lse_correction"}
		lse(&c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(&c, "lse_per_step", a.LSEPerStep, a.LSE, a.LSEPacked, true)
		c.Apart([]check.Named{{Name: "lse", Tensor: a.LSE}}, []check.Named{{Name: "lse_per_step", Tensor: a.LSEPerStep}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
		return c.Err
	},
	Operands: func(a THDSecondHalfLSECorrectionArgs) []opregistry.Operand {
		return check.Operands{}.Update("lse", a.LSE).Read("lse_per_step", a.LSEPerStep).Read("cu_seqlens", a.CuSeqlens)
	},
})

// THDOutCorrectionArgs are the arguments of THDOutCorrection.
type THDOutCorrectionArgs struct {
	Out            *tensor.Tensor // [t, h, d]
	OutPerStep     *tensor.Tensor // [t, h, d], or [t/2, h, d] with OnlySecondHalf
	LSE            *tensor.Tensor // f32 [b, h, s], or [h, at least t] when packed
	LSEPerStep     *tensor.Tensor // like LSE; half as long with OnlySecondHalf
	CuSeqlens      *tensor.Tensor // i32 [b+1]
	OnlySecondHalf bool
	LSEPacked      bool
}

// THDOutCorrection adds the contribution of a step of attention to its output:
//
//	out += out_per_step · exp(lse_per_step − lse)
//
// for each token and head of packed sequences, or of their second halves. An element of 0 in
// out_per_step adds nothing, whatever the factor. Out is updated there and unchanged elsewhere; the
// others are read; all are disjoint. Out and out_per_step have one compute dtype; arithmetic is in
// f32 or better, rounded once. Source: TransformerEngine 2.14.
var THDOutCorrection = opregistry.NewOp("thd_out_correction", opregistry.Schema[THDOutCorrectionArgs]{
	Doc: "adds a step to the attention of packed sequences",
	Validate: func(a THDOutCorrectionArgs) error {
		c := check.Call{Op: "thd_out_correction"}
		if c.Compute("out", a.Out) && c.Rank("out", a.Out, 3) && c.Compute("out_per_step", a.OutPerStep) {
			c.SameDType("out_per_step", a.OutPerStep, "out", a.Out)
			tokens(&c, "out", a.Out, a.CuSeqlens)
			perStep(&c, "out_per_step", a.OutPerStep, "out", a.Out, a.OnlySecondHalf)
		}
		lse(&c, "lse", a.LSE, a.CuSeqlens, a.LSEPacked)
		lsePerStep(&c, "lse_per_step", a.LSEPerStep, a.LSE, a.LSEPacked, a.OnlySecondHalf)
		if c.Err == nil {
			heads, axis := a.Out.Shape()[1], 1
			if a.LSEPacked {
				axis = 0
			}
			if a.LSE.Shape()[axis] != heads {
				c.Fail("lse", "the "+check.Itoa(heads)+" heads of out", "%v", a.LSE)
			}
		}
		c.Apart([]check.Named{{Name: "out", Tensor: a.Out}},
			[]check.Named{{Name: "out_per_step", Tensor: a.OutPerStep}, {Name: "lse", Tensor: a.LSE}, {Name: "lse_per_step", Tensor: a.LSEPerStep}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
		return c.Err
	},
	Operands: func(a THDOutCorrectionArgs) []opregistry.Operand {
		return check.Operands{}.Update("out", a.Out).Read("out_per_step", a.OutPerStep).Read("lse", a.LSE).
			Read("lse_per_step", a.LSEPerStep).Read("cu_seqlens", a.CuSeqlens)
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
	Grad        *tensor.Tensor // [t, h, d] or [n, t, h, d]
	GradPerStep *tensor.Tensor // like Grad; half its tokens when one of the halves is unchanged
	CuSeqlens   *tensor.Tensor // i32 [b+1]
	FirstHalf   Correction
	SecondHalf  Correction // must differ from FirstHalf
}

// THDGradCorrection adds the contribution of a step to the halves of the gradient of each packed
// sequence, or copies it there:
//
//	grad += grad_per_step    add
//	grad  = grad_per_step    copy
//
// When one half is unchanged, grad_per_step holds the other halves one after the other. Grad is
// updated, and unchanged where it belongs to no sequence; grad_per_step and cu_seqlens are read;
// all are disjoint. Both gradients have one compute dtype; sums are rounded once. A sequence of odd
// length is an argument error. Source: TransformerEngine 2.14.
var THDGradCorrection = opregistry.NewOp("thd_grad_correction", opregistry.Schema[THDGradCorrectionArgs]{
	Doc: "adds a step to the gradient of halves of packed sequences",
	Validate: func(a THDGradCorrectionArgs) error {
		c := check.Call{Op: "thd_grad_correction"}
		correction(&c, "first_half", a.FirstHalf)
		correction(&c, "second_half", a.SecondHalf)
		if c.Err == nil && a.FirstHalf == a.SecondHalf {
			c.Fail("second_half", "another correction than first_half", "%v", a.SecondHalf)
		}
		if c.Compute("grad", a.Grad) && c.Compute("grad_per_step", a.GradPerStep) {
			c.SameDType("grad_per_step", a.GradPerStep, "grad", a.Grad)
			tokens(&c, "grad", a.Grad, a.CuSeqlens)
			perStep(&c, "grad_per_step", a.GradPerStep, "grad", a.Grad, a.FirstHalf == NoCorrection || a.SecondHalf == NoCorrection)
		}
		c.Apart([]check.Named{{Name: "grad", Tensor: a.Grad}}, []check.Named{{Name: "grad_per_step", Tensor: a.GradPerStep}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
		return c.Err
	},
	Operands: func(a THDGradCorrectionArgs) []opregistry.Operand {
		return check.Operands{}.Update("grad", a.Grad).Read("grad_per_step", a.GradPerStep).Read("cu_seqlens", a.CuSeqlens)
	},
})

func correction(c *check.Call, name string, x Correction) {
	if c.Err == nil && (x < NoCorrection || x > CopyCorrection) {
		c.Fail(name, "none, add or copy", "%v", x)
	}
}

// multiples requires sequence lengths that are multiples of n.
func multiples(c *check.Call, name string, cu *tensor.Tensor, n int) {
	for i := 1; c.Err == nil && i < cu.NumElements(); i++ {
		if length := check.Element(cu, i) - check.Element(cu, i-1); length%n != 0 {
			c.Fail(name, "sequence lengths that are multiples of "+check.Itoa(n), "%d", length)
		}
	}
}

func lastLength(cu *tensor.Tensor) int { return check.Element(cu, cu.NumElements()-1) }

// tokens requires [t, h, d] or [n, t, h, d] and sequences of even length within t.
func tokens(c *check.Call, name string, t, cu *tensor.Tensor) {
	if n := len(t.Shape()); c.Err == nil && n != 3 && n != 4 {
		c.Fail(name, "3 or 4 axes", "%v", t)
	}
	rising(c, "cu_seqlens", cu)
	if c.Err != nil {
		return
	}
	multiples(c, "cu_seqlens", cu, 2)
	if tokens := t.Shape()[len(t.Shape())-3]; lastLength(cu) > tokens {
		c.Fail("cu_seqlens", "at most the "+check.Itoa(tokens)+" tokens of "+name, "%d", lastLength(cu))
	}
}

// perStep requires the shape of another tensor, but with half its tokens.
func perStep(c *check.Call, name string, t *tensor.Tensor, otherName string, other *tensor.Tensor, half bool) {
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
func lse(c *check.Call, name string, t, cu *tensor.Tensor, packed bool) {
	if !c.DType(name, t, tensor.F32) {
		return
	}
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
	c.Elements("cu_seqlens", cu, shape[0]+1, "one a batch and one more")
	for b := 0; c.Err == nil && b < shape[0]; b++ {
		if n := check.Element(cu, b+1) - check.Element(cu, b); n > shape[2] {
			c.Fail("cu_seqlens", "sequences of at most the "+check.Itoa(shape[2])+" positions of "+name, "%d", n)
		}
	}
}

// lsePerStep requires the shape of lse, but with half its positions; packed ones may have more.
func lsePerStep(c *check.Call, name string, t, lse *tensor.Tensor, packed, half bool) {
	if !c.DType(name, t, tensor.F32) || !c.Rank(name, t, len(lse.Shape())) {
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
