package opscases

import (
	"fmt"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// bytes returns an operand of random bytes, which cover all patterns of the dtype.
func bytes(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.T.Helper()
	x := s.Out(l, d, shape...)
	v := s.Random(128, x.NumElements())
	raw := make([]byte, len(v))
	for i := range v {
		raw[i] = byte(int(v[i]) + i)
	}
	from, err := tensor.FromBytes(raw, d, shape...)
	if err == nil {
		err = x.CopyFrom(from)
	}
	if err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
	return x
}

func fp8TransposeCases(tensor.DType) []opstest.Case[quant.FP8TransposeArgs] {
	var cases []opstest.Case[quant.FP8TransposeArgs]
	for _, d := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2, tensor.U8} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, shape := range [][]int{{1}, {7}, {3, 5}, {2, 3, 17}, {64, 33}, {0, 4}, {4, 0}} {
				cases = append(cases, opstest.Case[quant.FP8TransposeArgs]{Name: fmt.Sprintf("%v/%v/%v", d, shape, l), Make: func(s *opstest.Stage) quant.FP8TransposeArgs {
					n := tensor.Shape(shape)
					return quant.FP8TransposeArgs{Input: bytes(s, l, d, shape...), Out: s.Out(l, d, n.Cols(), n.Rows())}
				}})
			}
		}
	}
	return cases
}

func swapFirstDimsCases(d tensor.DType) []opstest.Case[quant.SwapFirstDimsArgs] {
	var cases []opstest.Case[quant.SwapFirstDimsArgs]
	for _, d := range []tensor.DType{d, tensor.F8E4M3, tensor.I64} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, shape := range [][]int{{1, 1}, {3, 5}, {7, 2, 9}, {2, 3, 4, 5}, {0, 4, 2}, {64, 33, 3}} {
				cases = append(cases, opstest.Case[quant.SwapFirstDimsArgs]{Name: fmt.Sprintf("of_%v/%v/%v", d, shape, l), Make: func(s *opstest.Stage) quant.SwapFirstDimsArgs {
					to := append([]int{shape[1], shape[0]}, shape[2:]...)
					return quant.SwapFirstDimsArgs{Tensor: s.In(l, d, shape...), Out: s.Out(l, d, to...)}
				}})
			}
		}
	}
	return cases
}

func nvfp4TransposeCases(tensor.DType) []opstest.Case[quant.NVFP4DataTransposeArgs] {
	var cases []opstest.Case[quant.NVFP4DataTransposeArgs]
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
		for _, shape := range [][2]int{{2, 2}, {6, 10}, {64, 34}, {0, 4}, {4, 0}} {
			cases = append(cases, opstest.Case[quant.NVFP4DataTransposeArgs]{Name: fmt.Sprintf("%v/%v", shape, l), Make: func(s *opstest.Stage) quant.NVFP4DataTransposeArgs {
				return quant.NVFP4DataTransposeArgs{Input: bytes(s, l, tensor.U8, shape[0], shape[1]/2), Out: s.Out(l, tensor.U8, shape[1], shape[0]/2)}
			}})
		}
	}
	return cases
}

func nvfp4MultiTransposeCases(tensor.DType) []opstest.Case[quant.NVFP42DMultiTensorTransposeArgs] {
	var cases []opstest.Case[quant.NVFP42DMultiTensorTransposeArgs]
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		for _, shapes := range [][][2]int{{{32, 48}, {2, 2}, {34, 18}}, {{0, 16}}, {}, {{4130, 34}, {34, 4130}}} {
			cases = append(cases, opstest.Case[quant.NVFP42DMultiTensorTransposeArgs]{Name: fmt.Sprintf("%v/%v", shapes, l), Make: func(s *opstest.Stage) quant.NVFP42DMultiTensorTransposeArgs {
				var a quant.NVFP42DMultiTensorTransposeArgs
				for _, n := range shapes {
					m, k := n[0], n[1]
					a.RowwiseDataList = append(a.RowwiseDataList, bytes(s, l, tensor.U8, m, k/2))
					a.ColumnwiseDataList = append(a.ColumnwiseDataList, s.Out(l, tensor.U8, k, m/2))
					a.RowwiseScaleInvList = append(a.RowwiseScaleInvList, s.In(l, tensor.F8E4M3, m+5, (k+15)/16))
					a.ColumnwiseScaleInvList = append(a.ColumnwiseScaleInvList, s.Out(l, tensor.F8E4M3, k+33, (m+15)/16))
				}
				return a
			}})
		}
	}
	return cases
}

func splitsCases(tensor.DType) []opstest.Case[quant.SplitsToOffsetsArgs] {
	var cases []opstest.Case[quant.SplitsToOffsetsArgs]
	for _, dims := range [][]int{{}, {5}, {0, 3, 0, 7}, {1 << 40, 1 << 20}} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			for _, last := range []int{0, 1, 4096} {
				cases = append(cases, opstest.Case[quant.SplitsToOffsetsArgs]{Name: fmt.Sprintf("%v/%d/%v", dims, last, l), Make: func(s *opstest.Stage) quant.SplitsToOffsetsArgs {
					return quant.SplitsToOffsetsArgs{FirstDims: dims, LogicalLastDim: last, Output: s.Out(l, tensor.I64, len(dims)+1)}
				}})
			}
		}
	}
	return cases
}
