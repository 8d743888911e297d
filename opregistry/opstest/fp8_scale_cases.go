package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// The operands of the ops of this file have fixed dtypes, so their cases are the same for every
// storage dtype, unless they take the dtype.

// amaxes returns values that the rules of scales treat differently.
func amaxes() []float64 {
	return []float64{
		0, 1, 2, 3, 448, 57344, 0.1, 1e-12, 1e-36, 0x1p-130, 0x1p-149, 3e38, math.MaxFloat32, math.Inf(1), math.NaN(),
		448 * (1 + 0x1p-7), 448 * (1 - 0x1p-8), 7, 3.5, 1.75,
	}
}

func computeScaleCases(tensor.DType) []testCase[quant.MultiTensorComputeScaleAndScaleInvArgs] {
	var cases []testCase[quant.MultiTensorComputeScaleAndScaleInvArgs]
	for _, largest := range []float32{448, 57344} {
		for _, pow2 := range []bool{false, true} {
			for _, eps := range []float32{0, 1e-3} {
				for _, l := range []layout{dense, padded} {
					cases = append(cases, testCase[quant.MultiTensorComputeScaleAndScaleInvArgs]{
						fmt.Sprintf("max=%g/pow2=%v/epsilon=%g/%v", largest, pow2, eps, l), func(s *stage) quant.MultiTensorComputeScaleAndScaleInvArgs {
							a := quant.MultiTensorComputeScaleAndScaleInvArgs{NoopFlag: s.flag(1), MaxFP8: largest, ForcePow2Scales: pow2, Epsilon: eps, TensorLists: make([][]*tensor.Tensor, 3)}
							for _, v := range [][]float64{amaxes(), {5}, {}} {
								x := s.out(l, tensor.F32, len(v))
								s.fill(x, v)
								a.TensorLists[0] = append(a.TensorLists[0], x)
								a.TensorLists[1] = append(a.TensorLists[1], s.out(l, tensor.F32, len(v)))
								a.TensorLists[2] = append(a.TensorLists[2], s.out(l, tensor.F32, len(v)))
							}
							return a
						},
					})
				}
			}
		}
	}
	return cases
}

func computeE8M0Cases(tensor.DType) []testCase[quant.MultiTensorComputeScaleInvE8M0Args] {
	var cases []testCase[quant.MultiTensorComputeScaleInvE8M0Args]
	for _, l := range []layout{dense, padded} {
		cases = append(cases, testCase[quant.MultiTensorComputeScaleInvE8M0Args]{l.String(), func(s *stage) quant.MultiTensorComputeScaleInvE8M0Args {
			a := quant.MultiTensorComputeScaleInvE8M0Args{NoopFlag: s.flag(1), TensorLists: make([][]*tensor.Tensor, 2)}
			// From 2⁻¹¹⁰ on the quotient is not a subnormal of f32.
			powers := make([]float64, 237)
			for i := range powers {
				powers[i] = math.Ldexp(7, i-110)
			}
			normal := []float64{0, 1, 2, 3, 448, 57344, 0.1, math.Inf(1), math.NaN(), 450, 446, 7}
			for _, v := range [][]float64{normal, powers, {}} {
				x := s.out(l, tensor.BF16, len(v))
				s.fill(x, v)
				a.TensorLists[0] = append(a.TensorLists[0], x)
				a.TensorLists[1] = append(a.TensorLists[1], s.out(l, tensor.U8, len(v)))
			}
			return a
		}})
	}
	return cases
}

func computeAmaxCases(d tensor.DType) []testCase[quant.ComputeAmaxArgs] {
	var cases []testCase[quant.ComputeAmaxArgs]
	add := func(name string, x func(s *stage) *tensor.Tensor) {
		cases = append(cases, testCase[quant.ComputeAmaxArgs]{name, func(s *stage) quant.ComputeAmaxArgs {
			return quant.ComputeAmaxArgs{Input: x(s), Amax: s.out(dense, tensor.F32, 1)}
		}})
	}
	for _, shape := range [][]int{{}, {1}, {7}, {0}, {3, 11}, {64, 17}, {2, 3, 5}, {3000}} {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", shape, l), func(s *stage) *tensor.Tensor { return s.in(l, d, shape...) })
		}
	}
	inf, nan := math.Inf(-1), math.NaN()
	for _, v := range [][]float64{{nan, 1, -2, nan}, {nan, nan}, {1, inf, nan}, {-3, 1}, {0, 0}} {
		add(fmt.Sprint(v), func(s *stage) *tensor.Tensor { return s.values(d, v...) })
	}
	return cases
}

func fusedAmaxCases(tensor.DType) []testCase[quant.FusedAmaxAndScaleUpdateArgs] {
	var cases []testCase[quant.FusedAmaxAndScaleUpdateArgs]
	add := func(name string, l layout, algo quant.AmaxComputeAlgo, d tensor.DType, margin float32, lengths, counts []int, edit func(a *quant.FusedAmaxAndScaleUpdateArgs)) {
		cases = append(cases, testCase[quant.FusedAmaxAndScaleUpdateArgs]{name, func(s *stage) quant.FusedAmaxAndScaleUpdateArgs {
			a := quant.FusedAmaxAndScaleUpdateArgs{AmaxComputeAlgo: algo, FP8DType: d, Margin: margin}
			total := 0
			for i, n := range counts {
				a.AmaxHistories = append(a.AmaxHistories, s.squares([]*tensor.Tensor{s.in(l, tensor.F32, lengths[i], n)})...)
				a.Scales = append(a.Scales, s.in(l, tensor.F32, n))
				total += n
			}
			a.AmaxReductionBuffer = s.squares([]*tensor.Tensor{s.in(l, tensor.F32, total)})[0]
			edit(&a)
			return a
		}})
	}
	plain := func(*quant.FusedAmaxAndScaleUpdateArgs) {}
	for _, algo := range []quant.AmaxComputeAlgo{quant.AmaxMostRecent, quant.AmaxMax} {
		for _, l := range []layout{dense, padded} {
			add(fmt.Sprintf("%v/%v", algo, l), l, algo, tensor.F8E4M3, 0, []int{5, 1, 33}, []int{3, 2, 7}, plain)
		}
		add(fmt.Sprintf("%v/e5m2/margin", algo), dense, algo, tensor.F8E5M2, 2, []int{4}, []int{3}, plain)
		add(fmt.Sprintf("%v/special_values", algo), dense, algo, tensor.F8E4M3, 0, []int{3}, []int{8}, func(a *quant.FusedAmaxAndScaleUpdateArgs) {
			h, b := a.AmaxHistories[0], a.AmaxReductionBuffer
			for col, v := range []float64{0, 0, math.Inf(1), math.NaN(), 1e-38, 1, 1, 0} {
				b.Set(v, col)
			}
			h.Set(0, 0, 1) // a column without history
			h.Set(math.Inf(1), 1, 5)
			h.Set(math.NaN(), 2, 6)
			for row := range 3 {
				h.Set(0, row, 7)
			}
		})
		add(fmt.Sprintf("%v/nothing", algo), dense, algo, tensor.F8E4M3, 0, nil, nil, plain)
	}
	return cases
}

// tileAmaxes returns amaxes of tiles of magnitude 1; some are zero.
func (s *stage) tileAmaxes(l layout, rows, cols int) *tensor.Tensor {
	s.t.Helper()
	x := s.squares([]*tensor.Tensor{s.in(l, tensor.F32, rows, cols)})[0]
	if x.NumElements() > 3 {
		x.Set(0, rows-1, cols-1)
	}
	return x
}

func globalScaleCases(tensor.DType) []testCase[quant.NVFP4ComputeGlobalScaleArgs] {
	var cases []testCase[quant.NVFP4ComputeGlobalScaleArgs]
	add := func(name string, l layout, v []float64, same bool) {
		cases = append(cases, testCase[quant.NVFP4ComputeGlobalScaleArgs]{name, func(s *stage) quant.NVFP4ComputeGlobalScaleArgs {
			x := s.out(l, tensor.F32, len(v))
			s.fill(x, v)
			if same {
				return quant.NVFP4ComputeGlobalScaleArgs{GlobalAmaxes: x, GlobalScaleTensor: x}
			}
			return quant.NVFP4ComputeGlobalScaleArgs{GlobalAmaxes: x, GlobalScaleTensor: s.out(l, tensor.F32, len(v))}
		}})
	}
	v := append(amaxes(), -1)
	add("dense", dense, v, false)
	add("padded", padded, v, false)
	add("in_place", dense, v, true)
	add("nothing", dense, nil, false)
	return cases
}

func perBlockScaleCases(tensor.DType) []testCase[quant.NVFP4ComputePerBlockScaleArgs] {
	var cases []testCase[quant.NVFP4ComputePerBlockScaleArgs]
	for _, global := range []float64{1, 0.7, 0, 1e-36, 300} {
		for _, l := range []layout{dense, padded, turned} {
			cases = append(cases, testCase[quant.NVFP4ComputePerBlockScaleArgs]{fmt.Sprintf("global=%g/%v", global, l), func(s *stage) quant.NVFP4ComputePerBlockScaleArgs {
				return quant.NVFP4ComputePerBlockScaleArgs{
					BlockAmax: s.tileAmaxes(l, 5, 7), Scale: s.out(l, tensor.F32, 5, 7), GlobalAmax: s.values(tensor.F32, global),
				}
			}})
		}
	}
	return append(cases, testCase[quant.NVFP4ComputePerBlockScaleArgs]{"in_place", func(s *stage) quant.NVFP4ComputePerBlockScaleArgs {
		x := s.tileAmaxes(dense, 4, 4)
		return quant.NVFP4ComputePerBlockScaleArgs{BlockAmax: x, Scale: x, GlobalAmax: s.values(tensor.F32, 1)}
	}})
}

func expandScaleCases(tensor.DType) []testCase[quant.NVFP4ExpandScaleToFP8Args] {
	var cases []testCase[quant.NVFP4ExpandScaleToFP8Args]
	for _, shape := range [][3]int{{2, 3, 32}, {2, 3, 128}, {1, 1, 16}, {3, 5, 33}, {2, 2, 0}, {0, 2, 16}} {
		for _, l := range []layout{dense, padded} {
			cases = append(cases, testCase[quant.NVFP4ExpandScaleToFP8Args]{fmt.Sprintf("%v/%v", shape, l), func(s *stage) quant.NVFP4ExpandScaleToFP8Args {
				x := s.scaled(500, l, tensor.F32, shape[0], shape[1])
				if shape[0] > 1 {
					x.Set(math.NaN(), 1, 0)
					x.Set(math.Inf(1), 0, 1)
				}
				return quant.NVFP4ExpandScaleToFP8Args{Input: x, Output: s.out(l, tensor.F8E4M3, shape[2], shape[1]), BlockLen: 16}
			}})
		}
	}
	return cases
}

func fusedScaleCases(tensor.DType) []testCase[quant.NVFP4FusedScaleArgs] {
	var cases []testCase[quant.NVFP4FusedScaleArgs]
	for _, l := range []layout{dense, padded} {
		for _, shape := range [][3]int{{2, 3, 128}, {3, 5, 33}, {1, 1, 1}, {2, 2, 0}} {
			cases = append(cases, testCase[quant.NVFP4FusedScaleArgs]{fmt.Sprintf("%v/%v", shape, l), func(s *stage) quant.NVFP4FusedScaleArgs {
				return s.fusedScale(l, shape[0], shape[1], shape[2])
			}})
		}
	}
	return cases
}

func (s *stage) fusedScale(l layout, rows, cols, padded int) quant.NVFP4FusedScaleArgs {
	return quant.NVFP4FusedScaleArgs{
		BlockAmax: s.tileAmaxes(l, rows, cols), GlobalAmax: s.values(tensor.F32, 1.1), PerBlockScale: s.out(l, tensor.F32, rows, cols),
		TargetScale: s.out(l, tensor.F8E4M3, padded, cols), TargetAmax: s.out(dense, tensor.F32, 1), BlockLen: 16,
	}
}

func multiFusedScaleCases(tensor.DType) []testCase[quant.NVFP4MultiTensorFusedScaleArgs] {
	return []testCase[quant.NVFP4MultiTensorFusedScaleArgs]{
		{"two", func(s *stage) quant.NVFP4MultiTensorFusedScaleArgs {
			return quant.NVFP4MultiTensorFusedScaleArgs{Calls: []quant.NVFP4FusedScaleArgs{s.fusedScale(dense, 2, 3, 128), s.fusedScale(padded, 1, 5, 16)}}
		}},
		{"none", func(*stage) quant.NVFP4MultiTensorFusedScaleArgs { return quant.NVFP4MultiTensorFusedScaleArgs{} }},
	}
}
