package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
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
		{[]int{8, 34, 2}, 44, 2, 5}, {[]int{4, 2}, 6, 0, 3},
	}
}

// cumulative makes cumulative lengths: entry b is the total length of the sequences before b.
func (s *stage) cumulative(lengths []int) *tensor.Tensor {
	s.t.Helper()
	cu := []int{0}
	for _, n := range lengths {
		cu = append(cu, cu[len(cu)-1]+n)
	}
	return s.integers(tensor.I32, cu, len(cu))
}

func partitionCases(tensor.DType) []testCase[attention.THDGetPartitionedIndicesArgs] {
	var cases []testCase[attention.THDGetPartitionedIndicesArgs]
	for _, lengths := range [][]int{{}, {0}, {12}, {24, 0, 12, 36}} {
		for _, world := range []int{1, 2, 3} {
			for rank := range world {
				cases = append(cases, testCase[attention.THDGetPartitionedIndicesArgs]{fmt.Sprintf("%v/rank%d_of_%d", lengths, rank, world), func(s *stage) attention.THDGetPartitionedIndicesArgs {
					return attention.THDGetPartitionedIndicesArgs{
						CuSeqlens: s.cumulative(lengths), WorldSize: world, Rank: rank, Output: s.out(dense, tensor.I32, total(lengths)/world),
					}
				}})
			}
		}
	}
	return cases
}

// packed returns a case for each packedCase, each layout, and each number of copies along a first
// axis, if there is one.
func packed[A any](copies []int, make func(s *stage, l layout, p packedCase, axes func(tokens int) []int) A) []testCase[A] {
	var cases []testCase[A]
	for _, p := range packedCases() {
		for _, l := range []layout{dense, padded, turned} {
			for _, n := range copies {
				axes := func(tokens int) []int {
					if n == 0 {
						return []int{tokens, p.heads, p.d}
					}
					return []int{n, tokens, p.heads, p.d}
				}
				cases = append(cases, testCase[A]{fmt.Sprintf("%v/%v/copies%d", p, l, n), func(s *stage) A { return make(s, l, p, axes) }})
			}
		}
	}
	return cases
}

func readHalfCases(d tensor.DType) []testCase[attention.THDReadHalfTensorArgs] {
	var cases []testCase[attention.THDReadHalfTensorArgs]
	for half := range 2 {
		for _, c := range packed([]int{0, 2}, func(s *stage, l layout, p packedCase, axes func(int) []int) attention.THDReadHalfTensorArgs {
			a := attention.THDReadHalfTensorArgs{
				Tensor: s.in(l, d, axes(p.tokens)...), CuSeqlens: s.cumulative(p.lengths), HalfIdx: half, Half: s.out(l, d, axes(p.tokens/2)...),
			}
			if a.Tensor.NumElements() > 0 {
				a.Tensor.Set(math.NaN(), make([]int, len(a.Tensor.Shape()))...)
			}
			return a
		}) {
			c.name = fmt.Sprintf("half%d/%s", half, c.name)
			cases = append(cases, c)
		}
	}
	return cases
}

// lse makes log-sum-exps of all positions or of half of them; packed ones have some additional
// positions.
func (p packedCase) lse(s *stage, packed, half bool) *tensor.Tensor {
	s.t.Helper()
	positions, more := p.longest(), 0
	if packed {
		positions = p.tokens
	}
	if half {
		positions, more = positions/2, 1
	}
	if packed {
		return s.scaled(3, dense, tensor.F32, p.heads, positions+more)
	}
	return s.scaled(3, padded, tensor.F32, len(p.lengths), p.heads, positions)
}

// lseCases returns cases for log-sum-exps, packed and not.
func lseCases[A any](make func(s *stage, p packedCase, packed bool) A) []testCase[A] {
	var cases []testCase[A]
	for _, p := range packedCases() {
		for _, packed := range []bool{false, true} {
			cases = append(cases, testCase[A]{fmt.Sprintf("%v/packed=%v", p, packed), func(s *stage) A { return make(s, p, packed) }})
		}
	}
	return cases
}

func readLSECases(tensor.DType) []testCase[attention.THDReadSecondHalfLSEArgs] {
	return lseCases(func(s *stage, p packedCase, packed bool) attention.THDReadSecondHalfLSEArgs {
		a := attention.THDReadSecondHalfLSEArgs{LSE: p.lse(s, packed, false), CuSeqlens: s.cumulative(p.lengths), LSEPacked: packed}
		a.HalfLSE = s.out(dense, tensor.F32, p.lse(s, packed, true).Shape()...)
		return a
	})
}

func correctLSECases(tensor.DType) []testCase[attention.THDSecondHalfLSECorrectionArgs] {
	cases := lseCases(func(s *stage, p packedCase, packed bool) attention.THDSecondHalfLSECorrectionArgs {
		return attention.THDSecondHalfLSECorrectionArgs{
			LSE: p.lse(s, packed, false), LSEPerStep: p.lse(s, packed, true), CuSeqlens: s.cumulative(p.lengths), LSEPacked: packed,
		}
	})
	return append(cases, testCase[attention.THDSecondHalfLSECorrectionArgs]{"infinities", func(s *stage) attention.THDSecondHalfLSECorrectionArgs {
		inf := math.Inf(1)
		a := attention.THDSecondHalfLSECorrectionArgs{
			LSE: s.out(dense, tensor.F32, 1, 12), LSEPerStep: s.out(dense, tensor.F32, 1, 6), CuSeqlens: s.cumulative([]int{12}), LSEPacked: true,
		}
		s.fill(a.LSE, []float64{0, 0, 0, 0, 0, 0, -inf, -inf, 2, inf, 1, 300})
		s.fill(a.LSEPerStep, []float64{-inf, 3, -inf, 1, math.NaN(), -300})
		return a
	}})
}

func outCorrectionCases(d tensor.DType) []testCase[attention.THDOutCorrectionArgs] {
	var cases []testCase[attention.THDOutCorrectionArgs]
	for _, lsePacked := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			for _, c := range packed([]int{0}, func(s *stage, l layout, p packedCase, axes func(int) []int) attention.THDOutCorrectionArgs {
				tokens := p.tokens
				if half {
					tokens /= 2
				}
				return attention.THDOutCorrectionArgs{
					Out: s.in(l, d, axes(p.tokens)...), OutPerStep: s.in(l, d, axes(tokens)...), LSE: p.lse(s, lsePacked, false),
					LSEPerStep: p.lse(s, lsePacked, half), CuSeqlens: s.cumulative(p.lengths), OnlySecondHalf: half, LSEPacked: lsePacked,
				}
			}) {
				c.name = fmt.Sprintf("packed=%v/half=%v/%s", lsePacked, half, c.name)
				cases = append(cases, c)
			}
		}
	}
	return append(cases, testCase[attention.THDOutCorrectionArgs]{"zero_times_inf", func(s *stage) attention.THDOutCorrectionArgs {
		a := attention.THDOutCorrectionArgs{
			Out: s.in(dense, d, 2, 1, 3), OutPerStep: s.out(dense, d, 2, 1, 3), LSE: s.out(dense, tensor.F32, 1, 2),
			LSEPerStep: s.out(dense, tensor.F32, 1, 2), CuSeqlens: s.cumulative([]int{2}), LSEPacked: true,
		}
		s.fill(a.OutPerStep, []float64{0, 1, -1, 0, 2, 0})
		s.fill(a.LSE, []float64{0, math.Inf(-1)})
		s.fill(a.LSEPerStep, []float64{math.Inf(1), 0})
		return a
	}})
}

func gradCorrectionCases(d tensor.DType) []testCase[attention.THDGradCorrectionArgs] {
	var cases []testCase[attention.THDGradCorrectionArgs]
	all := []attention.Correction{attention.NoCorrection, attention.AddCorrection, attention.CopyCorrection}
	for _, first := range all {
		for _, second := range all {
			if first == second {
				continue
			}
			for _, c := range packed([]int{0, 2}, func(s *stage, l layout, p packedCase, axes func(int) []int) attention.THDGradCorrectionArgs {
				tokens := p.tokens
				if first == attention.NoCorrection || second == attention.NoCorrection {
					tokens /= 2
				}
				return attention.THDGradCorrectionArgs{
					Grad: s.in(l, d, axes(p.tokens)...), GradPerStep: s.in(l, d, axes(tokens)...), CuSeqlens: s.cumulative(p.lengths),
					FirstHalf: first, SecondHalf: second,
				}
			}) {
				c.name = fmt.Sprintf("%v,%v/%s", first, second, c.name)
				cases = append(cases, c)
			}
		}
	}
	return cases
}
