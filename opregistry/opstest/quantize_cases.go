package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// quantization is a quantiser and the dtype of its data.
type quantization struct {
	name string
	q    quant.Quantizer
	data tensor.DType
}

// quantizations are the formats in use.
func quantizations() []quantization {
	var all []quantization
	for _, d := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
		for _, q := range []quant.Quantizer{
			{Scaling: quant.DelayedScaling}, {Scaling: quant.CurrentScaling}, {Scaling: quant.CurrentScaling, ForcePow2Scales: true, AmaxEpsilon: 0.25},
			{Scaling: quant.BlockScaling, ForcePow2Scales: true}, {Scaling: quant.BlockScaling}, {Scaling: quant.BlockScaling, ForcePow2Scales: true, Block2D: true},
			{Scaling: quant.MXFP8Scaling},
		} {
			all = append(all, quantization{fmt.Sprintf("%v/pow2=%v/2d=%v/%v", q.Scaling, q.ForcePow2Scales, q.Block2D, d), q, d})
		}
	}
	for _, q := range []quant.Quantizer{
		{Scaling: quant.NVFP4Scaling}, {Scaling: quant.NVFP4Scaling, Block2D: true},
		{Scaling: quant.NVFP4Scaling, Stochastic: true, Seed: 0x0123456789abcdef, Offset: 1<<32 - 3},
	} {
		all = append(all, quantization{fmt.Sprintf("nvfp4/2d=%v/stochastic=%v", q.Block2D, q.Stochastic), q, tensor.U8})
	}
	return all
}

// quantized makes the operands for a matrix [rows, cols].
func (s *stage) quantized(z quantization, l layout, rows, cols int, byRows, byColumns bool) quant.Quantized {
	s.t.Helper()
	var out quant.Quantized
	b := z.q.Scaling.BlockLen()
	side := func(rows, cols int, turn bool) (data, scales *tensor.Tensor) {
		make := func(d tensor.DType, rows, cols int) *tensor.Tensor {
			if turn {
				rows, cols = cols, rows
			}
			return s.out(l, d, rows, cols)
		}
		if z.data == tensor.U8 {
			data = make(tensor.U8, rows, cols/2)
		} else {
			data = make(z.data, rows, cols)
		}
		if b == 0 {
			return data, nil
		}
		if z.q.Block2D {
			rows = (rows + b - 1) / b
		}
		d := tensor.F32
		switch z.q.Scaling {
		case quant.MXFP8Scaling:
			d = tensor.U8
		case quant.NVFP4Scaling:
			d = tensor.F8E4M3
		}
		return data, make(d, rows, (cols+b-1)/b)
	}
	if byRows {
		out.Data, out.ScaleInv = side(rows, cols, false)
	}
	if byColumns {
		out.ColumnwiseData, out.ColumnwiseScaleInv = side(cols, rows, z.q.Scaling == quant.MXFP8Scaling)
	}
	switch z.q.Scaling {
	case quant.DelayedScaling:
		out.ScaleInv, out.Scale, out.Amax = s.out(dense, tensor.F32, 1), s.values(tensor.F32, 300), s.values(tensor.F32, 0.75)
	case quant.CurrentScaling:
		out.ScaleInv, out.Scale, out.Amax = s.out(dense, tensor.F32, 1), s.out(dense, tensor.F32, 1), s.out(dense, tensor.F32, 1)
	case quant.NVFP4Scaling:
		out.Amax = s.out(dense, tensor.F32, 1)
	}
	return out
}

// rows makes a tensor whose rows have different magnitudes.
func (s *stage) rows(l layout, d tensor.DType, rows, cols int) *tensor.Tensor {
	s.t.Helper()
	x := s.in(l, d, rows, cols)
	v := x.Float64s()
	for i := range v {
		v[i] *= math.Exp2(float64(i/max(cols, 1)%5 - 2))
	}
	s.fill(x, v)
	return x
}

func quantizeCases(d tensor.DType) []testCase[quant.QuantizeArgs] {
	var cases []testCase[quant.QuantizeArgs]
	add := func(name string, z quantization, l layout, rows, cols int, byRows, byColumns bool, edit func(s *stage, a *quant.QuantizeArgs)) {
		cases = append(cases, testCase[quant.QuantizeArgs]{z.name + "/" + name, func(s *stage) quant.QuantizeArgs {
			a := quant.QuantizeArgs{Tensor: s.rows(l, d, rows, cols), Quantizer: z.q, Output: s.quantized(z, l, rows, cols, byRows, byColumns)}
			edit(s, &a)
			return a
		}})
	}
	plain := func(*stage, *quant.QuantizeArgs) {}
	for _, z := range quantizations() {
		for _, shape := range [][2]int{{2, 2}, {0, 4}, {4, 0}, {36, 66}} {
			add(fmt.Sprint(shape), z, dense, shape[0], shape[1], true, true, plain)
		}
		add("rows", z, padded, 6, 34, true, false, plain)
		add("columns", z, turned, 34, 6, false, true, plain)
		for _, noop := range []float64{0, 1} {
			add(fmt.Sprintf("noop=%g", noop), z, dense, 4, 6, true, false, func(s *stage, a *quant.QuantizeArgs) { a.Noop = s.values(tensor.F32, noop) })
		}
		add("special_values", z, dense, 4, 64, true, true, func(s *stage, a *quant.QuantizeArgs) {
			a.Tensor.Set(math.NaN(), 0, 3)
			a.Tensor.Set(math.Inf(-1), 1, 20)
			for c := range 64 {
				a.Tensor.Set(0, 2, c)
			}
		})
		add("large", z, dense, 2, 4, true, false, func(s *stage, a *quant.QuantizeArgs) { a.Tensor.Set(6e4, 1, 1) })
	}
	for _, z := range []quantization{quantizations()[3], quantizations()[5]} {
		add("several_blocks", z, dense, 130, 134, true, true, plain)
	}
	cases = append(cases, testCase[quant.QuantizeArgs]{"three_axes", func(s *stage) quant.QuantizeArgs {
		z := quantizations()[6]
		return quant.QuantizeArgs{Tensor: s.in(dense, d, 3, 2, 40), Quantizer: z.q, Output: s.quantized(z, dense, 6, 40, true, true)}
	}})
	return cases
}

// anyQuantized fills operands with data and scales that some quantiser could have written.
func (s *stage) anyQuantized(z quantization, l layout, rows, cols int, byRows, byColumns bool) quant.Quantized {
	s.t.Helper()
	out := s.quantized(z, l, rows, cols, byRows, byColumns)
	for i, t := range []*tensor.Tensor{out.Data, out.ScaleInv, out.ColumnwiseData, out.ColumnwiseScaleInv, out.Amax} {
		if t == nil {
			continue
		}
		v := s.random(127, t.NumElements())
		for j := range v {
			switch {
			case t.DType() == tensor.U8 && i%2 == 1: // E8M0: 2^±13
				v[j] = 127 + math.Trunc(v[j]/10)
			case t.DType() == tensor.U8: // two E2M1
				v[j] += 128
			case i == 4:
				v[j] = 3
			default:
				v[j] /= 16
			}
		}
		s.fill(t, v)
	}
	return out
}

func dequantizeCases(d tensor.DType) []testCase[quant.DequantizeArgs] {
	var cases []testCase[quant.DequantizeArgs]
	for _, z := range quantizations() {
		if z.q.Stochastic {
			continue
		}
		add := func(name string, l layout, rows, cols int, byRows, byColumns bool) {
			cases = append(cases, testCase[quant.DequantizeArgs]{z.name + "/" + fmt.Sprintf("epsilon=%g/", z.q.AmaxEpsilon) + name, func(s *stage) quant.DequantizeArgs {
				return quant.DequantizeArgs{
					Input: s.anyQuantized(z, l, rows, cols, byRows, byColumns), Scaling: z.q.Scaling, Block2D: z.q.Block2D, Output: s.out(l, d, rows, cols),
				}
			}})
		}
		for _, shape := range [][2]int{{2, 2}, {0, 4}, {36, 66}} {
			add(fmt.Sprintf("%v/both", shape), dense, shape[0], shape[1], true, true)
		}
		add("rows", padded, 6, 34, true, false)
		add("columns", turned, 34, 6, false, true)
	}
	return cases
}

func bgradCases(d tensor.DType) []testCase[quant.BgradQuantizeArgs] {
	var cases []testCase[quant.BgradQuantizeArgs]
	for _, z := range append(quantizations(), quantization{name: "none"}) {
		for _, shape := range [][2]int{{36, 66}, {0, 4}, {2, 2}} {
			cases = append(cases, testCase[quant.BgradQuantizeArgs]{fmt.Sprintf("%s/%v/epsilon=%g", z.name, shape, z.q.AmaxEpsilon), func(s *stage) quant.BgradQuantizeArgs {
				a := quant.BgradQuantizeArgs{
					Input:     s.squares([]*tensor.Tensor{s.in(dense, d, shape[0], shape[1])})[0],
					Quantizer: z.q, DBias: s.out(dense, d, shape[1]),
				}
				if z.q.Scaling != quant.NoScaling {
					a.Output = s.quantized(z, dense, shape[0], shape[1], true, shape[0]%2 == 0)
				}
				return a
			}})
		}
	}
	return cases
}

func multiQuantizeCases(d tensor.DType) []testCase[quant.MultiTensorQuantizeArgs] {
	return []testCase[quant.MultiTensorQuantizeArgs]{
		{"all", func(s *stage) quant.MultiTensorQuantizeArgs {
			var a quant.MultiTensorQuantizeArgs
			for i, z := range quantizations() {
				rows, cols := 2+2*i, 6
				a.TensorList = append(a.TensorList, s.rows(dense, d, rows, cols))
				a.QuantizerList = append(a.QuantizerList, z.q)
				a.OutputList = append(a.OutputList, s.quantized(z, dense, rows, cols, true, i%2 == 0))
			}
			return a
		}},
		{"none", func(*stage) quant.MultiTensorQuantizeArgs { return quant.MultiTensorQuantizeArgs{} }},
	}
}

// sections are lengths along the first axis.
func sections() [][]int { return [][]int{{2, 0, 6, 4}, {8}, {0}, {}} }

func splitQuantizeCases(d tensor.DType) []testCase[quant.SplitQuantizeArgs] {
	var cases []testCase[quant.SplitQuantizeArgs]
	for _, lengths := range sections() {
		cases = append(cases, testCase[quant.SplitQuantizeArgs]{fmt.Sprint(lengths), func(s *stage) quant.SplitQuantizeArgs {
			a := quant.SplitQuantizeArgs{SplitSections: lengths}
			total := 0
			for i, n := range lengths {
				z := quantizations()[3*i]
				a.QuantizerList = append(a.QuantizerList, z.q)
				a.OutputList = append(a.OutputList, s.quantized(z, dense, 3*n, 6, true, i%2 == 0))
				total += n
			}
			a.Tensor = s.in(dense, d, total, 3, 6)
			return a
		}})
	}
	return cases
}

// group makes the outputs of a grouped op, as views of shared memory.
func (s *stage) group(z quantization, lengths []int, cols int) []quant.Quantized {
	s.t.Helper()
	var out []quant.Quantized
	width := cols
	if z.data == tensor.U8 {
		width = cols / 2
	}
	data := s.parts(false, z.data, []int{0, width}, 0, lengths...)
	for i, n := range lengths {
		q := s.quantized(z, dense, n, cols, true, false)
		q.Data = data[i]
		out = append(out, q)
	}
	return out
}

func groupQuantizeCases(d tensor.DType) []testCase[quant.GroupQuantizeArgs] {
	var cases []testCase[quant.GroupQuantizeArgs]
	for i, z := range quantizations() {
		lengths := sections()[i%len(sections())]
		cases = append(cases, testCase[quant.GroupQuantizeArgs]{fmt.Sprintf("%s/%v/epsilon=%g", z.name, lengths, z.q.AmaxEpsilon), func(s *stage) quant.GroupQuantizeArgs {
			return quant.GroupQuantizeArgs{Tensor: s.in(padded, d, sum(lengths), 34), Quantizer: z.q, FirstDims: lengths, OutputList: s.group(z, lengths, 34)}
		}})
	}
	stochastic := quantizations()[len(quantizations())-1]
	return append(cases, testCase[quant.GroupQuantizeArgs]{"stochastic", func(s *stage) quant.GroupQuantizeArgs {
		lengths := []int{1, 3, 2}
		return quant.GroupQuantizeArgs{Tensor: s.in(dense, d, 6, 18), Quantizer: stochastic.q, FirstDims: lengths, OutputList: s.group(stochastic, lengths, 18)}
	}})
}

func bgradGroupCases(d tensor.DType) []testCase[quant.BgradGroupQuantizeArgs] {
	var cases []testCase[quant.BgradGroupQuantizeArgs]
	z := quantizations()[6]
	for _, lengths := range sections() {
		cases = append(cases, testCase[quant.BgradGroupQuantizeArgs]{fmt.Sprint(lengths), func(s *stage) quant.BgradGroupQuantizeArgs {
			return quant.BgradGroupQuantizeArgs{
				Tensor: s.squares([]*tensor.Tensor{s.in(dense, d, sum(lengths), 34)})[0], Quantizer: z.q, FirstDims: lengths,
				OutputList: s.group(z, lengths, 34), DBias: s.out(dense, d, len(lengths), 34),
			}
		}})
	}
	return cases
}

func sum(v []int) int {
	total := 0
	for _, n := range v {
		total += n
	}
	return total
}

func castToFP8Cases(d tensor.DType) []testCase[quant.CastToFP8Args] {
	var cases []testCase[quant.CastToFP8Args]
	for _, narrow := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
		for _, l := range []layout{dense, padded} {
			for _, shape := range [][]int{{5, 7}, {3}, {0, 2}} {
				cases = append(cases, testCase[quant.CastToFP8Args]{fmt.Sprintf("%v/%v/%v", narrow, l, shape), func(s *stage) quant.CastToFP8Args {
					return quant.CastToFP8Args{
						Input: s.in(l, d, shape...), FP8Tensor: 1, Output: s.out(l, narrow, shape...),
						FP8MetaTensor: quant.FP8TensorMeta{
							Scale: s.values(tensor.F32, 1, 300, 2), ScaleInv: s.in(l, tensor.F32, 3),
							AmaxHistory: s.squares([]*tensor.Tensor{s.in(l, tensor.F32, 2, 3)})[0],
						},
					}
				}})
			}
		}
	}
	return cases
}
