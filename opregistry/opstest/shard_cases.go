package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// shardCase is a shard of n elements from start on of a matrix [h, w].
type shardCase struct{ h, w, start, n int }

// shardCases returns shards that begin and end inside a row and a tile, whole matrices, and an
// empty shard. All numbers but n are even, for packed formats.
func shardCases() []shardCase {
	return []shardCase{
		{1, 2, 0, 2}, {2, 2, 2, 1}, {36, 34, 0, 36 * 34}, {36, 34, 100, 517}, {20, 130, 0, 40}, {150, 140, 17000, 2999},
		{4, 6, 24, 0}, {4, 6, 10, 0}, {0, 0, 0, 0}, {0, 4, 0, 0}, {17, 66, 66, 66},
	}
}

func (c shardCase) String() string { return fmt.Sprintf("%dx%d/%d+%d", c.h, c.w, c.start, c.n) }

// shard makes the elements of a shard, with a NaN and an infinity in larger ones.
func (s *stage) shard(l layout, d tensor.DType, c shardCase) *tensor.Tensor {
	s.t.Helper()
	x := s.in(l, d, c.n)
	if c.n > 500 {
		x.Set(math.NaN(), 1)
		x.Set(math.Inf(-1), 400)
	}
	return x
}

// tiles returns the numbers of square tiles along both axes.
func (c shardCase) tiles(b int) (rows, cols int) { return (c.h + b - 1) / b, (c.w + b - 1) / b }

// overShards makes a case of each shard, dense, and of one that is not.
func overShards[A any](make func(s *stage, l layout, c shardCase) A) []testCase[A] {
	var cases []testCase[A]
	for _, c := range shardCases() {
		cases = append(cases, testCase[A]{c.String(), func(s *stage) A { return make(s, dense, c) }})
	}
	c := shardCase{36, 34, 36, 301}
	return append(cases, testCase[A]{"padded", func(s *stage) A { return make(s, padded, c) }})
}

func (s *stage) partialAmax(l layout, d tensor.DType, c shardCase, b int) quant.PartialAmaxArgs {
	rows, cols := c.tiles(b)
	return quant.PartialAmaxArgs{Tensor: s.shard(l, d, c), Amax: s.out(l, tensor.F32, rows, cols), H: c.h, W: c.w, StartOffset: c.start, BlockLen: b}
}

func blockPartialAmaxCases(d tensor.DType) []testCase[quant.PartialAmaxArgs] {
	return overShards(func(s *stage, l layout, c shardCase) quant.PartialAmaxArgs { return s.partialAmax(l, d, c, 128) })
}

func nvfp4PartialAmaxCases(d tensor.DType) []testCase[quant.PartialAmaxArgs] {
	return overShards(func(s *stage, l layout, c shardCase) quant.PartialAmaxArgs { return s.partialAmax(l, d, c, 16) })
}

func nvfp4MultiPartialAmaxCases(d tensor.DType) []testCase[quant.NVFP4MultiTensorComputePartialAmaxArgs] {
	return []testCase[quant.NVFP4MultiTensorComputePartialAmaxArgs]{
		{"all", func(s *stage) quant.NVFP4MultiTensorComputePartialAmaxArgs {
			var a quant.NVFP4MultiTensorComputePartialAmaxArgs
			for _, c := range shardCases() {
				a.Calls = append(a.Calls, quant.NVFP4PartialAmaxArgs{PartialAmaxArgs: s.partialAmax(dense, d, c, 16), GlobalAmax: s.out(dense, tensor.F32, 1)})
			}
			return a
		}},
		{"none", func(*stage) quant.NVFP4MultiTensorComputePartialAmaxArgs {
			return quant.NVFP4MultiTensorComputePartialAmaxArgs{}
		}},
	}
}

func blockPartialCastCases(d tensor.DType) []testCase[quant.PartialCastArgs] {
	return overShards(func(s *stage, l layout, c shardCase) quant.PartialCastArgs {
		out := tensor.F8E4M3
		if c.n%2 == 1 {
			out = tensor.F8E5M2
		}
		rows, cols := c.tiles(128)
		return quant.PartialCastArgs{
			Inp: s.shard(l, d, c), Out: s.out(l, out, c.n), Scale: s.scaled(600, l, tensor.F32, rows, cols), H: c.h, W: c.w, StartOffset: c.start, BlockLen: 128,
		}
	})
}

func mxfp8PartialAmaxCases(d tensor.DType) []testCase[quant.MXFP8PartialAmaxArgs] {
	return overShards(func(s *stage, l layout, c shardCase) quant.MXFP8PartialAmaxArgs {
		return quant.MXFP8PartialAmaxArgs{
			Input: s.shard(l, d, c), AmaxRowwise: s.out(l, d, c.h, (c.w+31)/32), AmaxColwise: s.out(l, d, (c.h+31)/32, c.w),
			Rows: c.h, Cols: c.w, StartOffset: c.start,
		}
	})
}

func mxfp8PartialCastCases(d tensor.DType) []testCase[quant.MXFP8PartialCastArgs] {
	return overShards(func(s *stage, l layout, c shardCase) quant.MXFP8PartialCastArgs {
		scales := func(rows, cols int) *tensor.Tensor {
			x := s.out(l, tensor.U8, rows, cols)
			v := s.random(9, rows*cols)
			for i := range v {
				v[i] += 122 // 2⁻¹⁴ … 2⁴
			}
			if len(v) > 1 {
				v[len(v)-1] = 255
			}
			s.fill(x, v)
			return x
		}
		return quant.MXFP8PartialCastArgs{
			Input: s.shard(l, d, c), OutputRowwise: s.out(l, tensor.F8E4M3, c.n), OutputColwise: s.out(l, tensor.F8E4M3, c.n),
			ScaleInvRowwise: scales(c.h, (c.w+31)/32), ScaleInvColwise: scales((c.h+31)/32, c.w), Rows: c.h, Cols: c.w, StartOffset: c.start,
		}
	})
}

func (s *stage) nvfp4Cast(l layout, d tensor.DType, c shardCase, global float64) quant.NVFP42DPartialCastArgs {
	rows, cols := c.tiles(16)
	scale := s.scaled(440, l, tensor.F32, rows, cols)
	v := scale.Float64s()
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	if len(v) > 1 {
		v[0] = 1e-9
	}
	s.fill(scale, v)
	out := s.out(l, tensor.U8, (c.n+1)/2)
	kept := make([]float64, (c.n+1)/2)
	for i := range kept {
		kept[i] = 0xc9
	}
	s.fill(out, kept)
	return quant.NVFP42DPartialCastArgs{
		Inp: s.shard(l, d, c), Out: out, Scale: scale, GlobalScale: s.values(tensor.F32, global), H: c.h, W: c.w, StartOffset: c.start, BlockLen: 16,
	}
}

func nvfp4PartialCastCases(d tensor.DType) []testCase[quant.NVFP42DPartialCastArgs] {
	cases := overShards(func(s *stage, l layout, c shardCase) quant.NVFP42DPartialCastArgs { return s.nvfp4Cast(l, d, c, 1100) })
	for _, global := range []float64{0, -1, math.NaN()} {
		cases = append(cases, testCase[quant.NVFP42DPartialCastArgs]{fmt.Sprintf("global_scale=%g", global), func(s *stage) quant.NVFP42DPartialCastArgs {
			return s.nvfp4Cast(dense, d, shardCase{4, 6, 2, 9}, global)
		}})
	}
	return cases
}

func nvfp4MultiPartialCastCases(d tensor.DType) []testCase[quant.NVFP4MultiTensor2DPartialCastArgs] {
	return []testCase[quant.NVFP4MultiTensor2DPartialCastArgs]{
		{"all", func(s *stage) quant.NVFP4MultiTensor2DPartialCastArgs {
			var a quant.NVFP4MultiTensor2DPartialCastArgs
			for _, c := range shardCases() {
				a.Calls = append(a.Calls, s.nvfp4Cast(dense, d, c, 900))
			}
			return a
		}},
		{"none", func(*stage) quant.NVFP4MultiTensor2DPartialCastArgs { return quant.NVFP4MultiTensor2DPartialCastArgs{} }},
	}
}
