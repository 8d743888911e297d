package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// packedCase has packed sequences of even length among tokens, with heads of size d.
type packedCase struct {
	lengths          []int
	tokens, heads, d int
}

func (p packedCase) String() string {
	return fmt.Sprintf("%v,tokens%d,h%d,d%d", p.lengths, p.tokens, p.heads, p.d)
}

// longest returns the length of the longest sequence.
func (p packedCase) longest() int {
	most := 0
	for _, n := range p.lengths {
		most = max(most, n)
	}
	return most
}

func packedCases() []packedCase {
	return []packedCase{
		{[]int{2}, 2, 1, 1}, {[]int{4, 0, 6}, 10, 3, 5}, {[]int{4, 0, 6}, 14, 2, 4}, {[]int{}, 4, 2, 3}, {[]int{0}, 0, 2, 3},
		{[]int{8, 34, 2}, 44, 2, 5}, {[]int{4, 2}, 6, 0, 3}, {[]int{2050, 0, 66, 4}, 2123, 2, 3},
	}
}

// cumulative makes cumulative lengths: entry b is the total length of the sequences before b.
func cumulative(s *opstest.Stage, lengths []int) *tensor.Tensor {
	s.T.Helper()
	cu := []int{0}
	for _, n := range lengths {
		cu = append(cu, cu[len(cu)-1]+n)
	}
	return s.Integers(tensor.I32, cu, len(cu))
}

func partitionCases(tensor.DType) []opstest.Case[attention.THDGetPartitionedIndicesArgs] {
	var cases []opstest.Case[attention.THDGetPartitionedIndicesArgs]
	for _, lengths := range [][]int{{}, {0}, {12}, {24, 0, 12, 36}, {8196, 12}} {
		for _, world := range []int{1, 2, 3} {
			for rank := range world {
				cases = append(cases, opstest.Case[attention.THDGetPartitionedIndicesArgs]{Name: fmt.Sprintf("%v/rank%d_of_%d", lengths, rank, world), Make: func(s *opstest.Stage) attention.THDGetPartitionedIndicesArgs {
					return attention.THDGetPartitionedIndicesArgs{
						CuSeqlens: cumulative(s, lengths), WorldSize: world, Rank: rank, Output: s.Out(opstest.Dense, tensor.I32, opstest.Total(lengths)/world),
					}
				}})
			}
		}
	}
	return cases
}

// packed returns a case for each packedCase, each layout, and each number of copies along a first
// axis, if there is one.
func packed[A any](copies []int, make func(s *opstest.Stage, l opstest.Layout, p packedCase, axes func(tokens int) []int) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, p := range packedCases() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, n := range copies {
				axes := func(tokens int) []int {
					if n == 0 {
						return []int{tokens, p.heads, p.d}
					}
					return []int{n, tokens, p.heads, p.d}
				}
				cases = append(cases, opstest.Case[A]{Name: fmt.Sprintf("%v/%v/copies%d", p, l, n), Make: func(s *opstest.Stage) A { return make(s, l, p, axes) }})
			}
		}
	}
	return cases
}

func readHalfCases(d tensor.DType) []opstest.Case[attention.THDReadHalfTensorArgs] {
	var cases []opstest.Case[attention.THDReadHalfTensorArgs]
	for half := range 2 {
		for _, c := range packed([]int{0, 2}, func(s *opstest.Stage, l opstest.Layout, p packedCase, axes func(int) []int) attention.THDReadHalfTensorArgs {
			a := attention.THDReadHalfTensorArgs{
				Tensor: s.In(l, d, axes(p.tokens)...), CuSeqlens: cumulative(s, p.lengths), HalfIdx: half, Half: s.Out(l, d, axes(p.tokens/2)...),
			}
			if a.Tensor.NumElements() > 0 {
				a.Tensor.Set(math.NaN(), make([]int, len(a.Tensor.Shape()))...)
			}
			return a
		}) {
			c.Name = fmt.Sprintf("half%d/%s", half, c.Name)
			cases = append(cases, c)
		}
	}
	return cases
}

// lse makes log-sum-exps of all positions or of half of them; packed ones have some additional
// positions.
func (p packedCase) lse(s *opstest.Stage, packed, half bool) *tensor.Tensor {
	s.T.Helper()
	positions, more := p.longest(), 0
	if packed {
		positions = p.tokens
	}
	if half {
		positions, more = positions/2, 1
	}
	if packed {
		return s.Scaled(3, opstest.Dense, tensor.F32, p.heads, positions+more)
	}
	return s.Scaled(3, opstest.Padded, tensor.F32, len(p.lengths), p.heads, positions)
}

// lseCases returns cases for log-sum-exps, packed and not.
func lseCases[A any](make func(s *opstest.Stage, p packedCase, packed bool) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, p := range packedCases() {
		for _, packed := range []bool{false, true} {
			cases = append(cases, opstest.Case[A]{Name: fmt.Sprintf("%v/packed=%v", p, packed), Make: func(s *opstest.Stage) A { return make(s, p, packed) }})
		}
	}
	return cases
}

func readLSECases(tensor.DType) []opstest.Case[attention.THDReadSecondHalfLSEArgs] {
	return lseCases(func(s *opstest.Stage, p packedCase, packed bool) attention.THDReadSecondHalfLSEArgs {
		a := attention.THDReadSecondHalfLSEArgs{LSE: p.lse(s, packed, false), CuSeqlens: cumulative(s, p.lengths), LSEPacked: packed}
		a.HalfLSE = s.Out(opstest.Dense, tensor.F32, p.lse(s, packed, true).Shape()...)
		return a
	})
}

func correctLSECases(tensor.DType) []opstest.Case[attention.THDSecondHalfLSECorrectionArgs] {
	cases := lseCases(func(s *opstest.Stage, p packedCase, packed bool) attention.THDSecondHalfLSECorrectionArgs {
		return attention.THDSecondHalfLSECorrectionArgs{
			LSE: p.lse(s, packed, false), LSEPerStep: p.lse(s, packed, true), CuSeqlens: cumulative(s, p.lengths), LSEPacked: packed,
		}
	})
	return append(cases, opstest.Case[attention.THDSecondHalfLSECorrectionArgs]{Name: "infinities", Make: func(s *opstest.Stage) attention.THDSecondHalfLSECorrectionArgs {
		inf := math.Inf(1)
		a := attention.THDSecondHalfLSECorrectionArgs{
			LSE: s.Out(opstest.Dense, tensor.F32, 1, 12), LSEPerStep: s.Out(opstest.Dense, tensor.F32, 1, 6), CuSeqlens: cumulative(s, []int{12}), LSEPacked: true,
		}
		s.Fill(a.LSE, []float64{0, 0, 0, 0, 0, 0, -inf, -inf, 2, inf, 1, 300})
		s.Fill(a.LSEPerStep, []float64{-inf, 3, -inf, 1, math.NaN(), -300})
		return a
	}})
}

func outCorrectionCases(d tensor.DType) []opstest.Case[attention.THDOutCorrectionArgs] {
	var cases []opstest.Case[attention.THDOutCorrectionArgs]
	for _, lsePacked := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			for _, c := range packed([]int{0}, func(s *opstest.Stage, l opstest.Layout, p packedCase, axes func(int) []int) attention.THDOutCorrectionArgs {
				tokens := p.tokens
				if half {
					tokens /= 2
				}
				return attention.THDOutCorrectionArgs{
					Out: s.In(l, d, axes(p.tokens)...), OutPerStep: s.In(l, d, axes(tokens)...), LSE: p.lse(s, lsePacked, false),
					LSEPerStep: p.lse(s, lsePacked, half), CuSeqlens: cumulative(s, p.lengths), OnlySecondHalf: half, LSEPacked: lsePacked,
				}
			}) {
				c.Name = fmt.Sprintf("packed=%v/half=%v/%s", lsePacked, half, c.Name)
				cases = append(cases, c)
			}
		}
	}
	return append(cases, opstest.Case[attention.THDOutCorrectionArgs]{Name: "zero_times_inf", Make: func(s *opstest.Stage) attention.THDOutCorrectionArgs {
		a := attention.THDOutCorrectionArgs{
			Out: s.In(opstest.Dense, d, 2, 1, 3), OutPerStep: s.Out(opstest.Dense, d, 2, 1, 3), LSE: s.Out(opstest.Dense, tensor.F32, 1, 2),
			LSEPerStep: s.Out(opstest.Dense, tensor.F32, 1, 2), CuSeqlens: cumulative(s, []int{2}), LSEPacked: true,
		}
		s.Fill(a.OutPerStep, []float64{0, 1, -1, 0, 2, 0})
		s.Fill(a.LSE, []float64{0, math.Inf(-1)})
		s.Fill(a.LSEPerStep, []float64{math.Inf(1), 0})
		return a
	}})
}

func gradCorrectionCases(d tensor.DType) []opstest.Case[attention.THDGradCorrectionArgs] {
	var cases []opstest.Case[attention.THDGradCorrectionArgs]
	all := []attention.Correction{attention.NoCorrection, attention.AddCorrection, attention.CopyCorrection}
	for _, first := range all {
		for _, second := range all {
			if first == second {
				continue
			}
			for _, c := range packed([]int{0, 2}, func(s *opstest.Stage, l opstest.Layout, p packedCase, axes func(int) []int) attention.THDGradCorrectionArgs {
				tokens := p.tokens
				if first == attention.NoCorrection || second == attention.NoCorrection {
					tokens /= 2
				}
				return attention.THDGradCorrectionArgs{
					Grad: s.In(l, d, axes(p.tokens)...), GradPerStep: s.In(l, d, axes(tokens)...), CuSeqlens: cumulative(s, p.lengths),
					FirstHalf: first, SecondHalf: second,
				}
			}) {
				c.Name = fmt.Sprintf("%v,%v/%s", first, second, c.Name)
				cases = append(cases, c)
			}
		}
	}
	return cases
}
