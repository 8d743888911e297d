package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestTHDGetPartitionedIndices(t *testing.T) {
	type args = attention.THDGetPartitionedIndicesArgs
	good := func() args {
		return args{CuSeqlens: checktest.I32(0, 8, 12), WorldSize: 2, Rank: 1, Output: checktest.Zeros(tensor.I32, 6)}
	}
	checktest.Validation(t, attention.THDGetPartitionedIndices, good, []checktest.Refusal[args]{
		{Name: "no lengths", Edit: func(a *args) { a.CuSeqlens = nil }, Operand: "cu_seqlens", Want: "a tensor"},
		{Name: "no world", Edit: func(a *args) { a.WorldSize = 0 }, Operand: "world_size", Want: "in [1, 2147483647]"},
		{Name: "negative rank", Edit: func(a *args) { a.Rank = -1 }, Operand: "rank", Want: "0 <= rank < world_size"},
		{Name: "rank too large", Edit: func(a *args) { a.Rank = 2 }, Operand: "rank", Want: "0 <= rank < world_size"},
		{Name: "lengths", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 6, 12) }, Operand: "cu_seqlens", Want: "multiples of 4"},
		{Name: "length of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.I32, 12) }, Operand: "output", Want: "6 elements"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.I64, 6) }, Operand: "output", Want: "dtype i32"},
		{Name: "output over lengths", Edit: func(a *args) {
			a.Output.Set(8, 1)
			a.Output.Set(12, 2)
			a.CuSeqlens = checktest.Flat(a.Output, 3)
		}, Operand: "output", Want: "memory apart from cu_seqlens"},
	})
	checktest.Operands(t, attention.THDGetPartitionedIndices, good(), checktest.Access{"cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestTHDReadHalfTensor(t *testing.T) {
	type args = attention.THDReadHalfTensorArgs
	good := func() args {
		return args{Tensor: checktest.Zeros(tensor.F8E5M2, 2, 9, 3, 4), CuSeqlens: checktest.I32(0, 4, 8), HalfIdx: 1, Half: checktest.Zeros(tensor.F8E5M2, 2, 4, 3, 4)}
	}
	checktest.Validation(t, attention.THDReadHalfTensor, good, []checktest.Refusal[args]{
		{Name: "no tensor", Edit: func(a *args) { a.Tensor = nil }, Operand: "tensor", Want: "a tensor"},
		{Name: "no half", Edit: func(a *args) { a.Half = nil }, Operand: "half", Want: "a tensor"},
		{Name: "axes", Edit: func(a *args) { a.Tensor = checktest.Zeros(tensor.F8E5M2, 9, 12) }, Operand: "tensor", Want: "3 or 4 axes"},
		{Name: "dtype of half", Edit: func(a *args) { a.Half = checktest.F32(2, 4, 3, 4) }, Operand: "half", Want: "the dtype of tensor"},
		{Name: "axes of half", Edit: func(a *args) { a.Half = checktest.Zeros(tensor.F8E5M2, 4, 3, 4) }, Operand: "half", Want: "4 axes"},
		{Name: "tokens of half", Edit: func(a *args) { a.Half = checktest.Zeros(tensor.F8E5M2, 2, 5, 3, 4) }, Operand: "half", Want: "4 in axis 1"},
		{Name: "heads of half", Edit: func(a *args) { a.Half = checktest.Zeros(tensor.F8E5M2, 2, 4, 2, 4) }, Operand: "half", Want: "3 in axis 2"},
		{Name: "odd lengths", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 3, 8) }, Operand: "cu_seqlens", Want: "multiples of 2"},
		{Name: "too many tokens", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 4, 10) }, Operand: "cu_seqlens", Want: "at most the 9 tokens of tensor"},
		{Name: "half_idx", Edit: func(a *args) { a.HalfIdx = 2 }, Operand: "half_idx", Want: "0 or 1"},
		{Name: "half over tensor", Edit: func(a *args) { a.Half = checktest.View(a.Tensor, 2, 4, 3, 4) }, Operand: "half", Want: "memory apart from tensor"},
	})
	checktest.Accepted(t, attention.THDReadHalfTensor, good, map[string]func(a *args){
		"3 axes": func(a *args) { a.Tensor, a.Half = checktest.F32(8, 3, 4), checktest.F32(4, 3, 4) },
	})
	checktest.Operands(t, attention.THDReadHalfTensor, good(), checktest.Access{"tensor": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "half": opregistry.AccessWrite})
}

func TestTHDSecondHalfLSE(t *testing.T) {
	type args = attention.THDSecondHalfLSECorrectionArgs
	good := func() args {
		return args{LSE: checktest.F32(2, 3, 6), LSEPerStep: checktest.F32(2, 3, 3), CuSeqlens: checktest.I32(0, 4, 10)}
	}
	checktest.Validation(t, attention.THDSecondHalfLSECorrection, good, []checktest.Refusal[args]{
		{Name: "no lse", Edit: func(a *args) { a.LSE = nil }, Operand: "lse", Want: "a tensor"},
		{Name: "dtype of lse", Edit: func(a *args) { a.LSE = checktest.Zeros(tensor.F64, 2, 3, 6) }, Operand: "lse", Want: "dtype f32"},
		{Name: "axes of lse", Edit: func(a *args) { a.LSE = checktest.F32(3, 10) }, Operand: "lse", Want: "3 axes"},
		{Name: "axes of packed lse", Edit: func(a *args) { a.LSEPacked = true }, Operand: "lse", Want: "2 axes"},
		{Name: "batch", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 4) }, Operand: "cu_seqlens", Want: "3 elements"},
		{Name: "too long", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 2, 10) }, Operand: "cu_seqlens", Want: "sequences of at most the 6 positions of lse"},
		{Name: "odd lengths", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 3, 8) }, Operand: "cu_seqlens", Want: "multiples of 2"},
		{Name: "positions of the step", Edit: func(a *args) { a.LSEPerStep = checktest.F32(2, 3, 4) }, Operand: "lse_per_step", Want: "3 positions"},
		{Name: "heads of the step", Edit: func(a *args) { a.LSEPerStep = checktest.F32(2, 2, 3) }, Operand: "lse_per_step", Want: "3 in axis 1"},
		{Name: "in place", Edit: func(a *args) { a.LSEPerStep = checktest.View(a.LSE, 2, 3, 3) }, Operand: "lse", Want: "memory apart from lse_per_step"},
	})
	packed := func() args {
		return args{LSE: checktest.F32(3, 10), LSEPerStep: checktest.F32(3, 6), CuSeqlens: checktest.I32(0, 4, 10), LSEPacked: true}
	}
	checktest.Validation(t, attention.THDSecondHalfLSECorrection, packed, []checktest.Refusal[args]{
		{Name: "too many tokens", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 4, 12) }, Operand: "cu_seqlens", Want: "at most the 10 tokens of lse"},
		{Name: "positions of the step", Edit: func(a *args) { a.LSEPerStep = checktest.F32(3, 4) }, Operand: "lse_per_step", Want: "5 positions"},
	})
	checktest.Operands(t, attention.THDSecondHalfLSECorrection, good(), checktest.Access{
		"lse": opregistry.AccessUpdate, "lse_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead,
	})

	type read = attention.THDReadSecondHalfLSEArgs
	reads := func() read {
		return read{LSE: checktest.F32(2, 3, 6), CuSeqlens: checktest.I32(0, 4, 10), HalfLSE: checktest.F32(2, 3, 3)}
	}
	checktest.Validation(t, attention.THDReadSecondHalfLSE, reads, []checktest.Refusal[read]{
		{Name: "no lse", Edit: func(a *read) { a.LSE = nil }, Operand: "lse", Want: "a tensor"},
		{Name: "no half_lse", Edit: func(a *read) { a.HalfLSE = nil }, Operand: "half_lse", Want: "a tensor"},
		{Name: "dtype of half_lse", Edit: func(a *read) { a.HalfLSE = checktest.Zeros(tensor.BF16, 2, 3, 3) }, Operand: "half_lse", Want: "dtype f32"},
		{Name: "positions of half_lse", Edit: func(a *read) { a.HalfLSE = checktest.F32(2, 3, 2) }, Operand: "half_lse", Want: "3 positions"},
		{Name: "in place", Edit: func(a *read) { a.HalfLSE = checktest.View(a.LSE, 2, 3, 3) }, Operand: "half_lse", Want: "memory apart from lse"},
	})
	checktest.Operands(t, attention.THDReadSecondHalfLSE, reads(), checktest.Access{"lse": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "half_lse": opregistry.AccessWrite})
}

func TestTHDOutCorrection(t *testing.T) {
	type args = attention.THDOutCorrectionArgs
	good := func() args {
		return args{
			Out: checktest.F32(10, 3, 4), OutPerStep: checktest.F32(5, 3, 4), LSE: checktest.F32(2, 3, 6), LSEPerStep: checktest.F32(2, 3, 3), CuSeqlens: checktest.I32(0, 4, 10), OnlySecondHalf: true,
		}
	}
	checktest.Validation(t, attention.THDOutCorrection, good, []checktest.Refusal[args]{
		{Name: "no out", Edit: func(a *args) { a.Out = nil }, Operand: "out", Want: "a tensor"},
		{Name: "axes of out", Edit: func(a *args) { a.Out = checktest.F32(1, 10, 3, 4) }, Operand: "out", Want: "shape [t h d]"},
		{Name: "dtype of out", Edit: func(a *args) { a.Out = checktest.Zeros(tensor.F8E4M3, 10, 3, 4) }, Operand: "out", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "dtype of the step", Edit: func(a *args) { a.OutPerStep = checktest.Zeros(tensor.F16, 5, 3, 4) }, Operand: "out_per_step", Want: "the dtype of out"},
		{Name: "tokens of the step", Edit: func(a *args) { a.OutPerStep = checktest.F32(10, 3, 4) }, Operand: "out_per_step", Want: "5 in axis 0"},
		{Name: "heads of lse", Edit: func(a *args) { a.LSE, a.LSEPerStep = checktest.F32(2, 2, 6), checktest.F32(2, 2, 3) }, Operand: "lse", Want: "the 3 heads of out"},
		{Name: "positions of lse_per_step", Edit: func(a *args) { a.LSEPerStep = checktest.F32(2, 3, 6) }, Operand: "lse_per_step", Want: "3 positions"},
		{Name: "all of it", Edit: func(a *args) { a.OnlySecondHalf = false }, Operand: "out_per_step", Want: "10 in axis 0"},
		{Name: "out over the step", Edit: func(a *args) { a.OutPerStep = checktest.View(a.Out, 5, 3, 4) }, Operand: "out", Want: "memory apart from out_per_step"},
		{Name: "out over lse", Edit: func(a *args) { a.LSE = checktest.View(a.Out, 2, 3, 6) }, Operand: "out", Want: "memory apart from lse"},
	})
	checktest.Accepted(t, attention.THDOutCorrection, good, map[string]func(a *args){
		"packed": func(a *args) { a.LSEPacked, a.LSE, a.LSEPerStep = true, checktest.F32(3, 10), checktest.F32(3, 7) },
		"whole": func(a *args) {
			a.OnlySecondHalf, a.OutPerStep, a.LSEPerStep = false, checktest.F32(10, 3, 4), checktest.F32(2, 3, 6)
		},
	})
	checktest.Operands(t, attention.THDOutCorrection, good(), checktest.Access{
		"out": opregistry.AccessUpdate, "out_per_step": opregistry.AccessRead, "lse": opregistry.AccessRead, "lse_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead,
	})
}

func TestTHDGradCorrection(t *testing.T) {
	type args = attention.THDGradCorrectionArgs
	good := func() args {
		return args{
			Grad: checktest.F32(2, 10, 3, 4), GradPerStep: checktest.F32(2, 10, 3, 4), CuSeqlens: checktest.I32(0, 4, 10), FirstHalf: attention.AddCorrection, SecondHalf: attention.CopyCorrection,
		}
	}
	checktest.Validation(t, attention.THDGradCorrection, good, []checktest.Refusal[args]{
		{Name: "no first_half", Edit: func(a *args) { a.FirstHalf = 0 }, Operand: "first_half", Want: "none, add or copy"},
		{Name: "unknown second_half", Edit: func(a *args) { a.SecondHalf = 4 }, Operand: "second_half", Want: "none, add or copy"},
		{Name: "equal halves", Edit: func(a *args) { a.SecondHalf = attention.AddCorrection }, Operand: "second_half", Want: "another correction than first_half"},
		{Name: "no grad", Edit: func(a *args) { a.Grad = nil }, Operand: "grad", Want: "a tensor"},
		{Name: "half a step", Edit: func(a *args) { a.FirstHalf = attention.NoCorrection }, Operand: "grad_per_step", Want: "5 in axis 1"},
		{Name: "dtype of the step", Edit: func(a *args) { a.GradPerStep = checktest.Zeros(tensor.BF16, 2, 10, 3, 4) }, Operand: "grad_per_step", Want: "the dtype of grad"},
		{Name: "odd lengths", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 3, 8) }, Operand: "cu_seqlens", Want: "multiples of 2"},
		{Name: "in place", Edit: func(a *args) { a.GradPerStep = a.Grad }, Operand: "grad", Want: "memory apart from grad_per_step"},
	})
	checktest.Operands(t, attention.THDGradCorrection, good(), checktest.Access{"grad": opregistry.AccessUpdate, "grad_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead})
	assert.Equal(t, "none", attention.NoCorrection.String())
	assert.Equal(t, "correction(9)", attention.Correction(9).String())
}
