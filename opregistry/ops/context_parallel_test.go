package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestTHDGetPartitionedIndices(t *testing.T) {
	type args = ops.THDGetPartitionedIndicesArgs
	good := func() args {
		return args{CuSeqlens: i32(0, 8, 12), WorldSize: 2, Rank: 1, Output: of(tensor.I32, 6)}
	}
	testValidation(t, ops.THDGetPartitionedIndices, good, []refusal[args]{
		{"no lengths", func(a *args) { a.CuSeqlens = nil }, "cu_seqlens", "a tensor"},
		{"no world", func(a *args) { a.WorldSize = 0 }, "world_size", "from 1"},
		{"negative rank", func(a *args) { a.Rank = -1 }, "rank", "0 <= rank < world_size"},
		{"rank too large", func(a *args) { a.Rank = 2 }, "rank", "0 <= rank < world_size"},
		{"lengths", func(a *args) { a.CuSeqlens = i32(0, 6, 12) }, "cu_seqlens", "multiples of 4"},
		{"length of output", func(a *args) { a.Output = of(tensor.I32, 12) }, "output", "6 elements"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.I64, 6) }, "output", "dtype i32"},
		{"output over lengths", func(a *args) {
			a.Output.Set(8, 1)
			a.Output.Set(12, 2)
			a.CuSeqlens = flat(a.Output, 3)
		}, "output", "memory apart from cu_seqlens"},
	})
	testOperands(t, ops.THDGetPartitionedIndices, good(), access{"cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestTHDReadHalfTensor(t *testing.T) {
	type args = ops.THDReadHalfTensorArgs
	good := func() args {
		return args{Tensor: of(tensor.F8E5M2, 2, 9, 3, 4), CuSeqlens: i32(0, 4, 8), HalfIdx: 1, Half: of(tensor.F8E5M2, 2, 4, 3, 4)}
	}
	testValidation(t, ops.THDReadHalfTensor, good, []refusal[args]{
		{"no tensor", func(a *args) { a.Tensor = nil }, "tensor", "a tensor"},
		{"no half", func(a *args) { a.Half = nil }, "half", "a tensor"},
		{"axes", func(a *args) { a.Tensor = of(tensor.F8E5M2, 9, 12) }, "tensor", "3 or 4 axes"},
		{"dtype of half", func(a *args) { a.Half = f32(2, 4, 3, 4) }, "half", "the dtype of tensor"},
		{"axes of half", func(a *args) { a.Half = of(tensor.F8E5M2, 4, 3, 4) }, "half", "4 axes"},
		{"tokens of half", func(a *args) { a.Half = of(tensor.F8E5M2, 2, 5, 3, 4) }, "half", "4 in axis 1"},
		{"heads of half", func(a *args) { a.Half = of(tensor.F8E5M2, 2, 4, 2, 4) }, "half", "3 in axis 2"},
		{"odd lengths", func(a *args) { a.CuSeqlens = i32(0, 3, 8) }, "cu_seqlens", "multiples of 2"},
		{"too many tokens", func(a *args) { a.CuSeqlens = i32(0, 4, 10) }, "cu_seqlens", "at most the 9 tokens of tensor"},
		{"half_idx", func(a *args) { a.HalfIdx = 2 }, "half_idx", "0 or 1"},
		{"half over tensor", func(a *args) { a.Half = view(a.Tensor, 2, 4, 3, 4) }, "half", "memory apart from tensor"},
	})
	testAccepted(t, ops.THDReadHalfTensor, good, map[string]func(a *args){
		"3 axes": func(a *args) { a.Tensor, a.Half = f32(8, 3, 4), f32(4, 3, 4) },
	})
	testOperands(t, ops.THDReadHalfTensor, good(), access{"tensor": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "half": opregistry.AccessWrite})
}

func TestTHDSecondHalfLSE(t *testing.T) {
	type args = ops.THDSecondHalfLSECorrectionArgs
	good := func() args { return args{LSE: f32(2, 3, 6), LSEPerStep: f32(2, 3, 3), CuSeqlens: i32(0, 4, 10)} }
	testValidation(t, ops.THDSecondHalfLSECorrection, good, []refusal[args]{
		{"no lse", func(a *args) { a.LSE = nil }, "lse", "a tensor"},
		{"dtype of lse", func(a *args) { a.LSE = of(tensor.F64, 2, 3, 6) }, "lse", "dtype f32"},
		{"axes of lse", func(a *args) { a.LSE = f32(3, 10) }, "lse", "3 axes"},
		{"axes of packed lse", func(a *args) { a.LSEPacked = true }, "lse", "2 axes"},
		{"batch", func(a *args) { a.CuSeqlens = i32(0, 4) }, "cu_seqlens", "3 elements"},
		{"too long", func(a *args) { a.CuSeqlens = i32(0, 2, 10) }, "cu_seqlens", "sequences of at most the 6 positions of lse"},
		{"odd lengths", func(a *args) { a.CuSeqlens = i32(0, 3, 8) }, "cu_seqlens", "multiples of 2"},
		{"positions of the step", func(a *args) { a.LSEPerStep = f32(2, 3, 4) }, "lse_per_step", "3 positions"},
		{"heads of the step", func(a *args) { a.LSEPerStep = f32(2, 2, 3) }, "lse_per_step", "3 in axis 1"},
		{"in place", func(a *args) { a.LSEPerStep = view(a.LSE, 2, 3, 3) }, "lse", "memory apart from lse_per_step"},
	})
	packed := func() args {
		return args{LSE: f32(3, 10), LSEPerStep: f32(3, 6), CuSeqlens: i32(0, 4, 10), LSEPacked: true}
	}
	testValidation(t, ops.THDSecondHalfLSECorrection, packed, []refusal[args]{
		{"too many tokens", func(a *args) { a.CuSeqlens = i32(0, 4, 12) }, "cu_seqlens", "at most the 10 tokens of lse"},
		{"positions of the step", func(a *args) { a.LSEPerStep = f32(3, 4) }, "lse_per_step", "5 positions"},
	})
	testOperands(t, ops.THDSecondHalfLSECorrection, good(), access{
		"lse": opregistry.AccessUpdate, "lse_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead,
	})

	type read = ops.THDReadSecondHalfLSEArgs
	reads := func() read { return read{LSE: f32(2, 3, 6), CuSeqlens: i32(0, 4, 10), HalfLSE: f32(2, 3, 3)} }
	testValidation(t, ops.THDReadSecondHalfLSE, reads, []refusal[read]{
		{"no lse", func(a *read) { a.LSE = nil }, "lse", "a tensor"},
		{"no half_lse", func(a *read) { a.HalfLSE = nil }, "half_lse", "a tensor"},
		{"dtype of half_lse", func(a *read) { a.HalfLSE = of(tensor.BF16, 2, 3, 3) }, "half_lse", "dtype f32"},
		{"positions of half_lse", func(a *read) { a.HalfLSE = f32(2, 3, 2) }, "half_lse", "3 positions"},
		{"in place", func(a *read) { a.HalfLSE = view(a.LSE, 2, 3, 3) }, "half_lse", "memory apart from lse"},
	})
	testOperands(t, ops.THDReadSecondHalfLSE, reads(), access{"lse": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "half_lse": opregistry.AccessWrite})
}

func TestTHDOutCorrection(t *testing.T) {
	type args = ops.THDOutCorrectionArgs
	good := func() args {
		return args{
			Out: f32(10, 3, 4), OutPerStep: f32(5, 3, 4), LSE: f32(2, 3, 6), LSEPerStep: f32(2, 3, 3), CuSeqlens: i32(0, 4, 10), OnlySecondHalf: true,
		}
	}
	testValidation(t, ops.THDOutCorrection, good, []refusal[args]{
		{"no out", func(a *args) { a.Out = nil }, "out", "a tensor"},
		{"axes of out", func(a *args) { a.Out = f32(1, 10, 3, 4) }, "out", "3 axes"},
		{"dtype of out", func(a *args) { a.Out = of(tensor.F8E4M3, 10, 3, 4) }, "out", "dtype f32, bf16, f16 or f64"},
		{"dtype of the step", func(a *args) { a.OutPerStep = of(tensor.F16, 5, 3, 4) }, "out_per_step", "the dtype of out"},
		{"tokens of the step", func(a *args) { a.OutPerStep = f32(10, 3, 4) }, "out_per_step", "5 in axis 0"},
		{"heads of lse", func(a *args) { a.LSE, a.LSEPerStep = f32(2, 2, 6), f32(2, 2, 3) }, "lse", "the 3 heads of out"},
		{"positions of lse_per_step", func(a *args) { a.LSEPerStep = f32(2, 3, 6) }, "lse_per_step", "3 positions"},
		{"all of it", func(a *args) { a.OnlySecondHalf = false }, "out_per_step", "10 in axis 0"},
		{"out over the step", func(a *args) { a.OutPerStep = view(a.Out, 5, 3, 4) }, "out", "memory apart from out_per_step"},
		{"out over lse", func(a *args) { a.LSE = view(a.Out, 2, 3, 6) }, "out", "memory apart from lse"},
	})
	testAccepted(t, ops.THDOutCorrection, good, map[string]func(a *args){
		"packed": func(a *args) { a.LSEPacked, a.LSE, a.LSEPerStep = true, f32(3, 10), f32(3, 7) },
		"whole":  func(a *args) { a.OnlySecondHalf, a.OutPerStep, a.LSEPerStep = false, f32(10, 3, 4), f32(2, 3, 6) },
	})
	testOperands(t, ops.THDOutCorrection, good(), access{
		"out": opregistry.AccessUpdate, "out_per_step": opregistry.AccessRead, "lse": opregistry.AccessRead, "lse_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead,
	})
}

func TestTHDGradCorrection(t *testing.T) {
	type args = ops.THDGradCorrectionArgs
	good := func() args {
		return args{
			Grad: f32(2, 10, 3, 4), GradPerStep: f32(2, 10, 3, 4), CuSeqlens: i32(0, 4, 10), FirstHalf: ops.AddCorrection, SecondHalf: ops.CopyCorrection,
		}
	}
	testValidation(t, ops.THDGradCorrection, good, []refusal[args]{
		{"no first_half", func(a *args) { a.FirstHalf = 0 }, "first_half", "none, add or copy"},
		{"unknown second_half", func(a *args) { a.SecondHalf = 4 }, "second_half", "none, add or copy"},
		{"equal halves", func(a *args) { a.SecondHalf = ops.AddCorrection }, "second_half", "another correction than first_half"},
		{"no grad", func(a *args) { a.Grad = nil }, "grad", "a tensor"},
		{"half a step", func(a *args) { a.FirstHalf = ops.NoCorrection }, "grad_per_step", "5 in axis 1"},
		{"dtype of the step", func(a *args) { a.GradPerStep = of(tensor.BF16, 2, 10, 3, 4) }, "grad_per_step", "the dtype of grad"},
		{"odd lengths", func(a *args) { a.CuSeqlens = i32(0, 3, 8) }, "cu_seqlens", "multiples of 2"},
		{"in place", func(a *args) { a.GradPerStep = a.Grad }, "grad", "memory apart from grad_per_step"},
	})
	testOperands(t, ops.THDGradCorrection, good(), access{"grad": opregistry.AccessUpdate, "grad_per_step": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead})
	assert.Equal(t, "none", ops.NoCorrection.String())
	assert.Equal(t, "correction(9)", ops.Correction(9).String())
}
