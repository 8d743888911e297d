package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// shardCase is a shard of n elements from start on of a matrix [h, w].
type shardCase struct{ h, w, start, n int }

// shardCases returns shards that begin and end inside a row and a tile, whole matrices, an empty
// shard, and shards as long as those of models. All numbers but n are even, for packed formats.
func shardCases() []shardCase {
	return []shardCase{
		{1, 2, 0, 2}, {2, 2, 2, 1}, {36, 34, 0, 36 * 34}, {36, 34, 100, 517}, {20, 130, 0, 40}, {150, 140, 17000, 2999},
		{4, 6, 24, 0}, {4, 6, 10, 0}, {0, 0, 0, 0}, {0, 4, 0, 0}, {17, 66, 66, 66},
		{17000, 6, 12, 101983}, {6, 16420, 2, 98517},
	}
}

func (c shardCase) String() string { return fmt.Sprintf("%dx%d/%d+%d", c.h, c.w, c.start, c.n) }

// shard makes the elements of a shard, with a NaN and an infinity in larger ones.
func shard(s *opstest.Stage, l opstest.Layout, d tensor.DType, c shardCase) *tensor.Tensor {
	s.T.Helper()
	x := s.In(l, d, c.n)
	if c.n > 500 {
		x.Set(math.NaN(), 1)
		x.Set(math.Inf(-1), 400)
	}
	return x
}

// tiles returns the numbers of square tiles along both axes.
func (c shardCase) tiles(b int) (rows, cols int) { return (c.h + b - 1) / b, (c.w + b - 1) / b }

// overShards makes a case of each shard, dense, and of one that is not.
func overShards[A any](make func(s *opstest.Stage, l opstest.Layout, c shardCase) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, c := range shardCases() {
		cases = append(cases, opstest.Case[A]{Name: c.String(), Make: func(s *opstest.Stage) A { return make(s, opstest.Dense, c) }})
	}
	c := shardCase{36, 34, 36, 301}
	return append(cases, opstest.Case[A]{Name: "padded", Make: func(s *opstest.Stage) A { return make(s, opstest.Padded, c) }})
}

func partialAmax(s *opstest.Stage, l opstest.Layout, d tensor.DType, c shardCase, b int) quant.PartialAmaxArgs {
	rows, cols := c.tiles(b)
	return quant.PartialAmaxArgs{Tensor: shard(s, l, d, c), Amax: s.Out(l, tensor.F32, rows, cols), H: c.h, W: c.w, StartOffset: c.start, BlockLen: b}
}

// partialAmaxCases are shards with tiles of a usual length, and one with others.
func partialAmaxCases(d tensor.DType, usual int) []opstest.Case[quant.PartialAmaxArgs] {
	cases := overShards(func(s *opstest.Stage, l opstest.Layout, c shardCase) quant.PartialAmaxArgs {
		return partialAmax(s, l, d, c, usual)
	})
	for _, b := range []int{1, 5, 64} {
		cases = append(cases, opstest.Case[quant.PartialAmaxArgs]{Name: fmt.Sprintf("block_len=%d", b), Make: func(s *opstest.Stage) quant.PartialAmaxArgs {
			return partialAmax(s, opstest.Dense, d, shardCase{36, 34, 100, 517}, b)
		}})
	}
	for _, b := range []int{3, 4, 5} { // as many tiles of each of them
		cases = append(cases, opstest.Case[quant.PartialAmaxArgs]{Name: fmt.Sprintf("6x6/block_len=%d", b), Make: func(s *opstest.Stage) quant.PartialAmaxArgs {
			return partialAmax(s, opstest.Dense, d, shardCase{6, 6, 0, 36}, b)
		}})
	}
	return cases
}

func blockPartialAmaxCases(d tensor.DType) []opstest.Case[quant.PartialAmaxArgs] {
	return partialAmaxCases(d, 128)
}

func nvfp4PartialAmaxCases(d tensor.DType) []opstest.Case[quant.PartialAmaxArgs] {
	return partialAmaxCases(d, 16)
}

func nvfp4MultiPartialAmaxCases(d tensor.DType) []opstest.Case[quant.NVFP4MultiTensorComputePartialAmaxArgs] {
	return []opstest.Case[quant.NVFP4MultiTensorComputePartialAmaxArgs]{
		{Name: "all", Make: func(s *opstest.Stage) quant.NVFP4MultiTensorComputePartialAmaxArgs {
			var a quant.NVFP4MultiTensorComputePartialAmaxArgs
			for _, c := range shardCases() {
				a.Calls = append(a.Calls, quant.NVFP4PartialAmaxArgs{PartialAmaxArgs: partialAmax(s, opstest.Dense, d, c, 16), GlobalAmax: s.Out(opstest.Dense, tensor.F32, 1)})
			}
			return a
		}},
		{Name: "none", Make: func(*opstest.Stage) quant.NVFP4MultiTensorComputePartialAmaxArgs {
			return quant.NVFP4MultiTensorComputePartialAmaxArgs{}
		}},
	}
}

func blockPartialCastCases(d tensor.DType) []opstest.Case[quant.PartialCastArgs] {
	return overShards(func(s *opstest.Stage, l opstest.Layout, c shardCase) quant.PartialCastArgs {
		out := tensor.F8E4M3
		if c.n%2 == 1 {
			out = tensor.F8E5M2
		}
		rows, cols := c.tiles(128)
		return quant.PartialCastArgs{
			Inp: shard(s, l, d, c), Out: s.Out(l, out, c.n), Scale: s.Scaled(600, l, tensor.F32, rows, cols), H: c.h, W: c.w, StartOffset: c.start, BlockLen: 128,
		}
	})
}

func mxfp8PartialAmaxCases(d tensor.DType) []opstest.Case[quant.MXFP8PartialAmaxArgs] {
	return overShards(func(s *opstest.Stage, l opstest.Layout, c shardCase) quant.MXFP8PartialAmaxArgs {
		return quant.MXFP8PartialAmaxArgs{
			Input: shard(s, l, d, c), AmaxRowwise: s.Out(l, d, c.h, (c.w+31)/32), AmaxColwise: s.Out(l, d, (c.h+31)/32, c.w),
			Rows: c.h, Cols: c.w, StartOffset: c.start,
		}
	})
}

func mxfp8PartialCastCases(d tensor.DType) []opstest.Case[quant.MXFP8PartialCastArgs] {
	return overShards(func(s *opstest.Stage, l opstest.Layout, c shardCase) quant.MXFP8PartialCastArgs {
		scales := func(rows, cols int) *tensor.Tensor {
			x := s.Out(l, tensor.U8, rows, cols)
			v := s.Random(9, rows*cols)
			for i := range v {
				v[i] += 122 // 2⁻¹⁴ … 2⁴
			}
			if len(v) > 1 {
				v[len(v)-1] = 255
			}
			s.Fill(x, v)
			return x
		}
		return quant.MXFP8PartialCastArgs{
			Input: shard(s, l, d, c), OutputRowwise: s.Out(l, tensor.F8E4M3, c.n), OutputColwise: s.Out(l, tensor.F8E4M3, c.n),
			ScaleInvRowwise: scales(c.h, (c.w+31)/32), ScaleInvColwise: scales((c.h+31)/32, c.w), Rows: c.h, Cols: c.w, StartOffset: c.start,
		}
	})
}

func nvfp4Cast(s *opstest.Stage, l opstest.Layout, d tensor.DType, c shardCase, global float64) quant.NVFP42DPartialCastArgs {
	rows, cols := c.tiles(16)
	scale := s.Scaled(440, l, tensor.F32, rows, cols)
	v := scale.Float64s()
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	if len(v) > 1 {
		v[0] = 1e-9
	}
	s.Fill(scale, v)
	out := s.Out(l, tensor.U8, (c.n+1)/2)
	kept := make([]float64, (c.n+1)/2)
	for i := range kept {
		kept[i] = 0xc9
	}
	s.Fill(out, kept)
	return quant.NVFP42DPartialCastArgs{
		Inp: shard(s, l, d, c), Out: out, Scale: scale, GlobalScale: s.Values(tensor.F32, global), H: c.h, W: c.w, StartOffset: c.start, BlockLen: 16,
	}
}

func nvfp4PartialCastCases(d tensor.DType) []opstest.Case[quant.NVFP42DPartialCastArgs] {
	cases := overShards(func(s *opstest.Stage, l opstest.Layout, c shardCase) quant.NVFP42DPartialCastArgs {
		return nvfp4Cast(s, l, d, c, 1100)
	})
	for _, global := range []float64{0, -1, math.NaN()} {
		cases = append(cases, opstest.Case[quant.NVFP42DPartialCastArgs]{Name: fmt.Sprintf("global_scale=%g", global), Make: func(s *opstest.Stage) quant.NVFP42DPartialCastArgs {
			return nvfp4Cast(s, opstest.Dense, d, shardCase{4, 6, 2, 9}, global)
		}})
	}
	return cases
}

func nvfp4MultiPartialCastCases(d tensor.DType) []opstest.Case[quant.NVFP4MultiTensor2DPartialCastArgs] {
	return []opstest.Case[quant.NVFP4MultiTensor2DPartialCastArgs]{
		{Name: "all", Make: func(s *opstest.Stage) quant.NVFP4MultiTensor2DPartialCastArgs {
			var a quant.NVFP4MultiTensor2DPartialCastArgs
			for _, c := range shardCases() {
				a.Calls = append(a.Calls, nvfp4Cast(s, opstest.Dense, d, c, 900))
			}
			return a
		}},
		{Name: "none", Make: func(*opstest.Stage) quant.NVFP4MultiTensor2DPartialCastArgs {
			return quant.NVFP4MultiTensor2DPartialCastArgs{}
		}},
	}
}
