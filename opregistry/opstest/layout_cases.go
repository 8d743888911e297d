package opstest

import (
	"fmt"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// bytes returns an operand of random bytes, which cover all patterns of the dtype.
func (s *stage) bytes(l layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.t.Helper()
	x := s.out(l, d, shape...)
	v := s.random(128, x.NumElements())
	raw := make([]byte, len(v))
	for i := range v {
		raw[i] = byte(int(v[i]) + i)
	}
	from, err := tensor.FromBytes(raw, d, shape...)
	if err == nil {
		err = x.CopyFrom(from)
	}
	if err != nil {
		s.t.Fatalf("opstest: %v", err)
	}
	return x
}

func fp8TransposeCases(tensor.DType) []testCase[quant.FP8TransposeArgs] {
	var cases []testCase[quant.FP8TransposeArgs]
	for _, d := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2, tensor.U8} {
		for _, l := range []layout{dense, padded, turned} {
			for _, shape := range [][]int{{1}, {7}, {3, 5}, {2, 3, 17}, {64, 33}, {0, 4}, {4, 0}} {
				cases = append(cases, testCase[quant.FP8TransposeArgs]{fmt.Sprintf("%v/%v/%v", d, shape, l), func(s *stage) quant.FP8TransposeArgs {
					n := tensor.Shape(shape)
					return quant.FP8TransposeArgs{Input: s.bytes(l, d, shape...), Out: s.out(l, d, n.Cols(), n.Rows())}
				}})
			}
		}
	}
	return cases
}

func swapFirstDimsCases(d tensor.DType) []testCase[quant.SwapFirstDimsArgs] {
	var cases []testCase[quant.SwapFirstDimsArgs]
	for _, d := range []tensor.DType{d, tensor.F8E4M3, tensor.I64} {
		for _, l := range []layout{dense, padded, turned} {
			for _, shape := range [][]int{{1, 1}, {3, 5}, {7, 2, 9}, {2, 3, 4, 5}, {0, 4, 2}, {64, 33, 3}} {
				cases = append(cases, testCase[quant.SwapFirstDimsArgs]{fmt.Sprintf("of_%v/%v/%v", d, shape, l), func(s *stage) quant.SwapFirstDimsArgs {
					to := append([]int{shape[1], shape[0]}, shape[2:]...)
					return quant.SwapFirstDimsArgs{Tensor: s.in(l, d, shape...), Out: s.out(l, d, to...)}
				}})
			}
		}
	}
	return cases
}

func nvfp4TransposeCases(tensor.DType) []testCase[quant.NVFP4DataTransposeArgs] {
	var cases []testCase[quant.NVFP4DataTransposeArgs]
	for _, l := range []layout{dense, padded, turned} {
		for _, shape := range [][2]int{{2, 2}, {6, 10}, {64, 34}, {0, 4}, {4, 0}} {
			cases = append(cases, testCase[quant.NVFP4DataTransposeArgs]{fmt.Sprintf("%v/%v", shape, l), func(s *stage) quant.NVFP4DataTransposeArgs {
				return quant.NVFP4DataTransposeArgs{Input: s.bytes(l, tensor.U8, shape[0], shape[1]/2), Out: s.out(l, tensor.U8, shape[1], shape[0]/2)}
			}})
		}
	}
	return cases
}

func nvfp4MultiTransposeCases(tensor.DType) []testCase[quant.NVFP42DMultiTensorTransposeArgs] {
	var cases []testCase[quant.NVFP42DMultiTensorTransposeArgs]
	for _, l := range []layout{dense, padded} {
		for _, shapes := range [][][2]int{{{32, 48}, {2, 2}, {34, 18}}, {{0, 16}}, {}} {
			cases = append(cases, testCase[quant.NVFP42DMultiTensorTransposeArgs]{fmt.Sprintf("%v/%v", shapes, l), func(s *stage) quant.NVFP42DMultiTensorTransposeArgs {
				var a quant.NVFP42DMultiTensorTransposeArgs
				for _, n := range shapes {
					m, k := n[0], n[1]
					a.RowwiseDataList = append(a.RowwiseDataList, s.bytes(l, tensor.U8, m, k/2))
					a.ColumnwiseDataList = append(a.ColumnwiseDataList, s.out(l, tensor.U8, k, m/2))
					a.RowwiseScaleInvList = append(a.RowwiseScaleInvList, s.in(l, tensor.F8E4M3, m+5, (k+15)/16))
					a.ColumnwiseScaleInvList = append(a.ColumnwiseScaleInvList, s.out(l, tensor.F8E4M3, k+33, (m+15)/16))
				}
				return a
			}})
		}
	}
	return cases
}

func splitsCases(tensor.DType) []testCase[quant.SplitsToOffsetsArgs] {
	var cases []testCase[quant.SplitsToOffsetsArgs]
	for _, dims := range [][]int{{}, {5}, {0, 3, 0, 7}, {1 << 40, 1 << 20}} {
		for _, l := range []layout{dense, padded} {
			for _, last := range []int{0, 1, 4096} {
				cases = append(cases, testCase[quant.SplitsToOffsetsArgs]{fmt.Sprintf("%v/%d/%v", dims, last, l), func(s *stage) quant.SplitsToOffsetsArgs {
					return quant.SplitsToOffsetsArgs{FirstDims: dims, LogicalLastDim: last, Output: s.out(l, tensor.I64, len(dims)+1)}
				}})
			}
		}
	}
	return cases
}
