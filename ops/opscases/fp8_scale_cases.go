package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/opstest"
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

func computeScaleCases(tensor.DType) []opstest.Case[quant.MultiTensorComputeScaleAndScaleInvArgs] {
	var cases []opstest.Case[quant.MultiTensorComputeScaleAndScaleInvArgs]
	for _, largest := range []float32{448, 57344} {
		for _, pow2 := range []bool{false, true} {
			for _, eps := range []float32{0, 1e-3} {
				for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
					cases = append(cases, opstest.Case[quant.MultiTensorComputeScaleAndScaleInvArgs]{
						Name: fmt.Sprintf("max=%g/pow2=%v/epsilon=%g/%v", largest, pow2, eps, l), Make: func(s *opstest.Stage) quant.MultiTensorComputeScaleAndScaleInvArgs {
							a := quant.MultiTensorComputeScaleAndScaleInvArgs{NoopFlag: s.Flag(1), MaxFP8: largest, ForcePow2Scales: pow2, Epsilon: eps, TensorLists: make([][]*tensor.Tensor, 3)}
							for _, v := range [][]float64{amaxes(), {5}, {}} {
								x := s.Out(l, tensor.F32, len(v))
								s.Fill(x, v)
								a.TensorLists[0] = append(a.TensorLists[0], x)
								a.TensorLists[1] = append(a.TensorLists[1], s.Out(l, tensor.F32, len(v)))
								a.TensorLists[2] = append(a.TensorLists[2], s.Out(l, tensor.F32, len(v)))
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

func computeE8M0Cases(tensor.DType) []opstest.Case[quant.MultiTensorComputeScaleInvE8M0Args] {
	var cases []opstest.Case[quant.MultiTensorComputeScaleInvE8M0Args]
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		cases = append(cases, opstest.Case[quant.MultiTensorComputeScaleInvE8M0Args]{Name: l.String(), Make: func(s *opstest.Stage) quant.MultiTensorComputeScaleInvE8M0Args {
			a := quant.MultiTensorComputeScaleInvE8M0Args{NoopFlag: s.Flag(1), TensorLists: make([][]*tensor.Tensor, 2)}
			// From 2⁻¹¹⁰ on the quotient is not a subnormal of f32.
			powers := make([]float64, 237)
			for i := range powers {
				powers[i] = math.Ldexp(7, i-110)
			}
			normal := []float64{0, 1, 2, 3, 448, 57344, 0.1, math.Inf(1), math.NaN(), 450, 446, 7}
			for _, v := range [][]float64{normal, powers, {}} {
				x := s.Out(l, tensor.BF16, len(v))
				s.Fill(x, v)
				a.TensorLists[0] = append(a.TensorLists[0], x)
				a.TensorLists[1] = append(a.TensorLists[1], s.Out(l, tensor.U8, len(v)))
			}
			return a
		}})
	}
	return cases
}

func computeAmaxCases(d tensor.DType) []opstest.Case[quant.ComputeAmaxArgs] {
	var cases []opstest.Case[quant.ComputeAmaxArgs]
	add := func(name string, x func(s *opstest.Stage) *tensor.Tensor) {
		cases = append(cases, opstest.Case[quant.ComputeAmaxArgs]{Name: name, Make: func(s *opstest.Stage) quant.ComputeAmaxArgs {
			return quant.ComputeAmaxArgs{Input: x(s), Amax: s.Out(opstest.Dense, tensor.F32, 1)}
		}})
	}
	for _, shape := range [][]int{{}, {1}, {7}, {0}, {3, 11}, {64, 17}, {2, 3, 5}, {3000}} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", shape, l), func(s *opstest.Stage) *tensor.Tensor { return s.In(l, d, shape...) })
		}
	}
	inf, nan := math.Inf(-1), math.NaN()
	for _, v := range [][]float64{{nan, 1, -2, nan}, {nan, nan}, {1, inf, nan}, {-3, 1}, {0, 0}} {
		add(fmt.Sprint(v), func(s *opstest.Stage) *tensor.Tensor { return s.Values(d, v...) })
	}
	return cases
}

func fusedAmaxCases(tensor.DType) []opstest.Case[quant.FusedAmaxAndScaleUpdateArgs] {
	var cases []opstest.Case[quant.FusedAmaxAndScaleUpdateArgs]
	add := func(name string, l opstest.Layout, algo quant.AmaxComputeAlgo, d tensor.DType, margin float32, lengths, counts []int, edit func(a *quant.FusedAmaxAndScaleUpdateArgs)) {
		cases = append(cases, opstest.Case[quant.FusedAmaxAndScaleUpdateArgs]{Name: name, Make: func(s *opstest.Stage) quant.FusedAmaxAndScaleUpdateArgs {
			a := quant.FusedAmaxAndScaleUpdateArgs{AmaxComputeAlgo: algo, FP8DType: d, Margin: margin}
			total := 0
			for i, n := range counts {
				a.AmaxHistories = append(a.AmaxHistories, s.Squares([]*tensor.Tensor{s.In(l, tensor.F32, lengths[i], n)})...)
				a.Scales = append(a.Scales, s.In(l, tensor.F32, n))
				total += n
			}
			a.AmaxReductionBuffer = s.Squares([]*tensor.Tensor{s.In(l, tensor.F32, total)})[0]
			edit(&a)
			return a
		}})
	}
	plain := func(*quant.FusedAmaxAndScaleUpdateArgs) {}
	for _, algo := range []quant.AmaxComputeAlgo{quant.AmaxMostRecent, quant.AmaxMax} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			add(fmt.Sprintf("%v/%v", algo, l), l, algo, tensor.F8E4M3, 0, []int{5, 1, 33}, []int{3, 2, 7}, plain)
		}
		add(fmt.Sprintf("%v/e5m2/margin", algo), opstest.Dense, algo, tensor.F8E5M2, 2, []int{4}, []int{3}, plain)
		add(fmt.Sprintf("%v/special_values", algo), opstest.Dense, algo, tensor.F8E4M3, 0, []int{3}, []int{8}, func(a *quant.FusedAmaxAndScaleUpdateArgs) {
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
		add(fmt.Sprintf("%v/nothing", algo), opstest.Dense, algo, tensor.F8E4M3, 0, nil, nil, plain)
	}
	return cases
}

// tileAmaxes returns amaxes of tiles of magnitude 1; some are zero.
func tileAmaxes(s *opstest.Stage, l opstest.Layout, rows, cols int) *tensor.Tensor {
	s.T.Helper()
	x := s.Squares([]*tensor.Tensor{s.In(l, tensor.F32, rows, cols)})[0]
	if x.NumElements() > 3 {
		x.Set(0, rows-1, cols-1)
	}
	return x
}

func globalScaleCases(tensor.DType) []opstest.Case[quant.NVFP4ComputeGlobalScaleArgs] {
	var cases []opstest.Case[quant.NVFP4ComputeGlobalScaleArgs]
	add := func(name string, l opstest.Layout, v []float64, same bool) {
		cases = append(cases, opstest.Case[quant.NVFP4ComputeGlobalScaleArgs]{Name: name, Make: func(s *opstest.Stage) quant.NVFP4ComputeGlobalScaleArgs {
			x := s.Out(l, tensor.F32, len(v))
			s.Fill(x, v)
			if same {
				return quant.NVFP4ComputeGlobalScaleArgs{GlobalAmaxes: x, GlobalScaleTensor: x}
			}
			return quant.NVFP4ComputeGlobalScaleArgs{GlobalAmaxes: x, GlobalScaleTensor: s.Out(l, tensor.F32, len(v))}
		}})
	}
	v := append(amaxes(), -1)
	add("dense", opstest.Dense, v, false)
	add("padded", opstest.Padded, v, false)
	add("in_place", opstest.Dense, v, true)
	add("nothing", opstest.Dense, nil, false)
	return cases
}

func perBlockScaleCases(tensor.DType) []opstest.Case[quant.NVFP4ComputePerBlockScaleArgs] {
	var cases []opstest.Case[quant.NVFP4ComputePerBlockScaleArgs]
	for _, global := range []float64{1, 0.7, 0, 1e-36, 300} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[quant.NVFP4ComputePerBlockScaleArgs]{Name: fmt.Sprintf("global=%g/%v", global, l), Make: func(s *opstest.Stage) quant.NVFP4ComputePerBlockScaleArgs {
				return quant.NVFP4ComputePerBlockScaleArgs{
					BlockAmax: tileAmaxes(s, l, 5, 7), Scale: s.Out(l, tensor.F32, 5, 7), GlobalAmax: s.Values(tensor.F32, global),
				}
			}})
		}
	}
	return append(cases, opstest.Case[quant.NVFP4ComputePerBlockScaleArgs]{Name: "in_place", Make: func(s *opstest.Stage) quant.NVFP4ComputePerBlockScaleArgs {
		x := tileAmaxes(s, opstest.Dense, 4, 4)
		return quant.NVFP4ComputePerBlockScaleArgs{BlockAmax: x, Scale: x, GlobalAmax: s.Values(tensor.F32, 1)}
	}})
}

func expandScaleCases(tensor.DType) []opstest.Case[quant.NVFP4ExpandScaleToFP8Args] {
	var cases []opstest.Case[quant.NVFP4ExpandScaleToFP8Args]
	for _, shape := range [][3]int{{2, 3, 32}, {2, 3, 128}, {1, 1, 16}, {3, 5, 33}, {2, 2, 0}, {0, 2, 16}} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			cases = append(cases, opstest.Case[quant.NVFP4ExpandScaleToFP8Args]{Name: fmt.Sprintf("%v/%v", shape, l), Make: func(s *opstest.Stage) quant.NVFP4ExpandScaleToFP8Args {
				x := s.Scaled(500, l, tensor.F32, shape[0], shape[1])
				if shape[0] > 1 {
					x.Set(math.NaN(), 1, 0)
					x.Set(math.Inf(1), 0, 1)
				}
				return quant.NVFP4ExpandScaleToFP8Args{Input: x, Output: s.Out(l, tensor.F8E4M3, shape[2], shape[1]), BlockLen: 16}
			}})
		}
	}
	return cases
}

func fusedScaleCases(tensor.DType) []opstest.Case[quant.NVFP4FusedScaleArgs] {
	var cases []opstest.Case[quant.NVFP4FusedScaleArgs]
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		for _, shape := range [][3]int{{2, 3, 128}, {3, 5, 33}, {1, 1, 1}, {2, 2, 0}} {
			cases = append(cases, opstest.Case[quant.NVFP4FusedScaleArgs]{Name: fmt.Sprintf("%v/%v", shape, l), Make: func(s *opstest.Stage) quant.NVFP4FusedScaleArgs {
				return fusedScale(s, l, shape[0], shape[1], shape[2])
			}})
		}
	}
	return cases
}

func fusedScale(s *opstest.Stage, l opstest.Layout, rows, cols, padded int) quant.NVFP4FusedScaleArgs {
	return quant.NVFP4FusedScaleArgs{
		BlockAmax: tileAmaxes(s, l, rows, cols), GlobalAmax: s.Values(tensor.F32, 1.1), PerBlockScale: s.Out(l, tensor.F32, rows, cols),
		TargetScale: s.Out(l, tensor.F8E4M3, padded, cols), TargetAmax: s.Out(opstest.Dense, tensor.F32, 1), BlockLen: 16,
	}
}

func multiFusedScaleCases(tensor.DType) []opstest.Case[quant.NVFP4MultiTensorFusedScaleArgs] {
	return []opstest.Case[quant.NVFP4MultiTensorFusedScaleArgs]{
		{Name: "two", Make: func(s *opstest.Stage) quant.NVFP4MultiTensorFusedScaleArgs {
			return quant.NVFP4MultiTensorFusedScaleArgs{Calls: []quant.NVFP4FusedScaleArgs{fusedScale(s, opstest.Dense, 2, 3, 128), fusedScale(s, opstest.Padded, 1, 5, 16)}}
		}},
		{Name: "none", Make: func(*opstest.Stage) quant.NVFP4MultiTensorFusedScaleArgs {
			return quant.NVFP4MultiTensorFusedScaleArgs{}
		}},
	}
}
