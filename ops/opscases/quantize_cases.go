package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/opstest"
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
func quantized(s *opstest.Stage, z quantization, l opstest.Layout, rows, cols int, byRows, byColumns bool) quant.Quantized {
	s.T.Helper()
	var out quant.Quantized
	b := z.q.Scaling.BlockLen()
	side := func(rows, cols int, turn bool) (data, scales *tensor.Tensor) {
		make := func(d tensor.DType, rows, cols int) *tensor.Tensor {
			if turn {
				rows, cols = cols, rows
			}
			return s.Out(l, d, rows, cols)
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
		out.ScaleInv, out.Scale, out.Amax = s.Out(opstest.Dense, tensor.F32, 1), s.Values(tensor.F32, 300), s.Values(tensor.F32, 0.75)
	case quant.CurrentScaling:
		out.ScaleInv, out.Scale, out.Amax = s.Out(opstest.Dense, tensor.F32, 1), s.Out(opstest.Dense, tensor.F32, 1), s.Out(opstest.Dense, tensor.F32, 1)
	case quant.NVFP4Scaling:
		out.Amax = s.Out(opstest.Dense, tensor.F32, 1)
	}
	return out
}

// unevenRows makes a tensor whose rows have different magnitudes.
func unevenRows(s *opstest.Stage, l opstest.Layout, d tensor.DType, rows, cols int) *tensor.Tensor {
	s.T.Helper()
	x := s.In(l, d, rows, cols)
	v := x.Float64s()
	for i := range v {
		v[i] *= math.Exp2(float64(i/max(cols, 1)%5 - 2))
	}
	s.Fill(x, v)
	return x
}

func quantizeCases(d tensor.DType) []opstest.Case[quant.QuantizeArgs] {
	var cases []opstest.Case[quant.QuantizeArgs]
	add := func(name string, z quantization, l opstest.Layout, rows, cols int, byRows, byColumns bool, edit func(s *opstest.Stage, a *quant.QuantizeArgs)) {
		cases = append(cases, opstest.Case[quant.QuantizeArgs]{Name: z.name + "/" + name, Make: func(s *opstest.Stage) quant.QuantizeArgs {
			a := quant.QuantizeArgs{Tensor: unevenRows(s, l, d, rows, cols), Quantizer: z.q, Output: quantized(s, z, l, rows, cols, byRows, byColumns)}
			edit(s, &a)
			return a
		}})
	}
	plain := func(*opstest.Stage, *quant.QuantizeArgs) {}
	for _, z := range quantizations() {
		for _, shape := range [][2]int{{2, 2}, {0, 4}, {4, 0}, {36, 66}} {
			add(fmt.Sprint(shape), z, opstest.Dense, shape[0], shape[1], true, true, plain)
		}
		add("rows", z, opstest.Padded, 6, 34, true, false, plain)
		add("columns", z, opstest.Turned, 34, 6, false, true, plain)
		for _, noop := range []float64{0, 1} {
			add(fmt.Sprintf("noop=%g", noop), z, opstest.Dense, 4, 6, true, false, func(s *opstest.Stage, a *quant.QuantizeArgs) { a.Noop = s.Values(tensor.F32, noop) })
		}
		add("special_values", z, opstest.Dense, 4, 64, true, true, func(s *opstest.Stage, a *quant.QuantizeArgs) {
			a.Tensor.Set(math.NaN(), 0, 3)
			a.Tensor.Set(math.Inf(-1), 1, 20)
			for c := range 64 {
				a.Tensor.Set(0, 2, c)
			}
		})
		add("large", z, opstest.Dense, 2, 4, true, false, func(s *opstest.Stage, a *quant.QuantizeArgs) { a.Tensor.Set(6e4, 1, 1) })
	}
	for _, z := range []quantization{quantizations()[3], quantizations()[5]} {
		add("several_blocks", z, opstest.Dense, 130, 134, true, true, plain)
	}
	cases = append(cases, opstest.Case[quant.QuantizeArgs]{Name: "three_axes", Make: func(s *opstest.Stage) quant.QuantizeArgs {
		z := quantizations()[6]
		return quant.QuantizeArgs{Tensor: s.In(opstest.Dense, d, 3, 2, 40), Quantizer: z.q, Output: quantized(s, z, opstest.Dense, 6, 40, true, true)}
	}})
	return cases
}

// anyQuantized fills operands with data and scales that some quantiser could have written.
func anyQuantized(s *opstest.Stage, z quantization, l opstest.Layout, rows, cols int, byRows, byColumns bool) quant.Quantized {
	s.T.Helper()
	out := quantized(s, z, l, rows, cols, byRows, byColumns)
	for i, t := range []*tensor.Tensor{out.Data, out.ScaleInv, out.ColumnwiseData, out.ColumnwiseScaleInv, out.Amax} {
		if t == nil {
			continue
		}
		v := s.Random(127, t.NumElements())
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
		s.Fill(t, v)
	}
	return out
}

func dequantizeCases(d tensor.DType) []opstest.Case[quant.DequantizeArgs] {
	var cases []opstest.Case[quant.DequantizeArgs]
	for _, z := range quantizations() {
		if z.q.Stochastic {
			continue
		}
		add := func(name string, l opstest.Layout, rows, cols int, byRows, byColumns bool) {
			cases = append(cases, opstest.Case[quant.DequantizeArgs]{Name: z.name + "/" + fmt.Sprintf("epsilon=%g/", z.q.AmaxEpsilon) + name, Make: func(s *opstest.Stage) quant.DequantizeArgs {
				return quant.DequantizeArgs{
					Input: anyQuantized(s, z, l, rows, cols, byRows, byColumns), Scaling: z.q.Scaling, Block2D: z.q.Block2D, Output: s.Out(l, d, rows, cols),
				}
			}})
		}
		for _, shape := range [][2]int{{2, 2}, {0, 4}, {36, 66}} {
			add(fmt.Sprintf("%v/both", shape), opstest.Dense, shape[0], shape[1], true, true)
		}
		add("rows", opstest.Padded, 6, 34, true, false)
		add("columns", opstest.Turned, 34, 6, false, true)
	}
	return cases
}

func bgradCases(d tensor.DType) []opstest.Case[quant.BgradQuantizeArgs] {
	var cases []opstest.Case[quant.BgradQuantizeArgs]
	for _, z := range append(quantizations(), quantization{name: "none"}) {
		for _, shape := range [][2]int{{36, 66}, {0, 4}, {2, 2}} {
			cases = append(cases, opstest.Case[quant.BgradQuantizeArgs]{Name: fmt.Sprintf("%s/%v/epsilon=%g", z.name, shape, z.q.AmaxEpsilon), Make: func(s *opstest.Stage) quant.BgradQuantizeArgs {
				a := quant.BgradQuantizeArgs{
					Input:     s.Squares([]*tensor.Tensor{s.In(opstest.Dense, d, shape[0], shape[1])})[0],
					Quantizer: z.q, DBias: s.Out(opstest.Dense, d, shape[1]),
				}
				if z.q.Scaling != quant.NoScaling {
					a.Output = quantized(s, z, opstest.Dense, shape[0], shape[1], true, shape[0]%2 == 0)
				}
				return a
			}})
		}
	}
	return cases
}

func multiQuantizeCases(d tensor.DType) []opstest.Case[quant.MultiTensorQuantizeArgs] {
	return []opstest.Case[quant.MultiTensorQuantizeArgs]{
		{Name: "all", Make: func(s *opstest.Stage) quant.MultiTensorQuantizeArgs {
			var a quant.MultiTensorQuantizeArgs
			for i, z := range quantizations() {
				rows, cols := 2+2*i, 6
				a.TensorList = append(a.TensorList, unevenRows(s, opstest.Dense, d, rows, cols))
				a.QuantizerList = append(a.QuantizerList, z.q)
				a.OutputList = append(a.OutputList, quantized(s, z, opstest.Dense, rows, cols, true, i%2 == 0))
			}
			return a
		}},
		{Name: "none", Make: func(*opstest.Stage) quant.MultiTensorQuantizeArgs { return quant.MultiTensorQuantizeArgs{} }},
	}
}

// sections are lengths along the first axis.
func sections() [][]int { return [][]int{{2, 0, 6, 4}, {8}, {0}, {}} }

func splitQuantizeCases(d tensor.DType) []opstest.Case[quant.SplitQuantizeArgs] {
	var cases []opstest.Case[quant.SplitQuantizeArgs]
	for _, lengths := range sections() {
		cases = append(cases, opstest.Case[quant.SplitQuantizeArgs]{Name: fmt.Sprint(lengths), Make: func(s *opstest.Stage) quant.SplitQuantizeArgs {
			a := quant.SplitQuantizeArgs{SplitSections: lengths}
			total := 0
			for i, n := range lengths {
				z := quantizations()[3*i]
				a.QuantizerList = append(a.QuantizerList, z.q)
				a.OutputList = append(a.OutputList, quantized(s, z, opstest.Dense, 3*n, 6, true, i%2 == 0))
				total += n
			}
			a.Tensor = s.In(opstest.Dense, d, total, 3, 6)
			return a
		}})
	}
	return cases
}

// group makes the outputs of a grouped op, as views of shared memory.
func group(s *opstest.Stage, z quantization, lengths []int, cols int) []quant.Quantized {
	s.T.Helper()
	var out []quant.Quantized
	width := cols
	if z.data == tensor.U8 {
		width = cols / 2
	}
	data := s.Parts(false, z.data, []int{0, width}, 0, lengths...)
	for i, n := range lengths {
		q := quantized(s, z, opstest.Dense, n, cols, true, false)
		q.Data = data[i]
		out = append(out, q)
	}
	return out
}

const (
	manyRows = 1<<16 + 5 // do not fit in 16 bits
	rarely   = 4e7       // operations of a case that need not be called many times
)

func groupQuantizeCases(d tensor.DType) []opstest.Case[quant.GroupQuantizeArgs] {
	var cases []opstest.Case[quant.GroupQuantizeArgs]
	for i, z := range quantizations() {
		lengths := sections()[i%len(sections())]
		cases = append(cases, opstest.Case[quant.GroupQuantizeArgs]{Name: fmt.Sprintf("%s/%v/epsilon=%g", z.name, lengths, z.q.AmaxEpsilon), Make: func(s *opstest.Stage) quant.GroupQuantizeArgs {
			return quant.GroupQuantizeArgs{Tensor: s.In(opstest.Padded, d, sum(lengths), 34), Quantizer: z.q, FirstDims: lengths, OutputList: group(s, z, lengths, 34)}
		}})
	}
	if d == tensor.F32 {
		for _, z := range []quantization{quantizations()[0], quantizations()[6]} {
			lengths := []int{3, manyRows}
			cases = append(cases, opstest.Case[quant.GroupQuantizeArgs]{Name: fmt.Sprintf("%s/%v", z.name, lengths), Work: rarely, Make: func(s *opstest.Stage) quant.GroupQuantizeArgs {
				return quant.GroupQuantizeArgs{Tensor: s.In(opstest.Dense, d, sum(lengths), 2), Quantizer: z.q, FirstDims: lengths, OutputList: group(s, z, lengths, 2)}
			}})
		}
	}
	stochastic := quantizations()[len(quantizations())-1]
	return append(cases, opstest.Case[quant.GroupQuantizeArgs]{Name: "stochastic", Make: func(s *opstest.Stage) quant.GroupQuantizeArgs {
		lengths := []int{1, 3, 2}
		return quant.GroupQuantizeArgs{Tensor: s.In(opstest.Dense, d, 6, 18), Quantizer: stochastic.q, FirstDims: lengths, OutputList: group(s, stochastic, lengths, 18)}
	}})
}

func bgradGroupCases(d tensor.DType) []opstest.Case[quant.BgradGroupQuantizeArgs] {
	var cases []opstest.Case[quant.BgradGroupQuantizeArgs]
	add := func(z quantization, lengths []int) {
		cases = append(cases, opstest.Case[quant.BgradGroupQuantizeArgs]{Name: fmt.Sprintf("%s/%v/epsilon=%g", z.name, lengths, z.q.AmaxEpsilon), Make: func(s *opstest.Stage) quant.BgradGroupQuantizeArgs {
			return quant.BgradGroupQuantizeArgs{
				Tensor: s.Squares([]*tensor.Tensor{s.In(opstest.Dense, d, sum(lengths), 34)})[0], Quantizer: z.q, FirstDims: lengths,
				OutputList: group(s, z, lengths, 34), DBias: s.Out(opstest.Dense, d, len(lengths), 34),
			}
		}})
	}
	for _, z := range quantizations() {
		add(z, sections()[0])
	}
	for _, lengths := range sections()[1:] {
		add(quantizations()[6], lengths)
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

func castToFP8Cases(d tensor.DType) []opstest.Case[quant.CastToFP8Args] {
	var cases []opstest.Case[quant.CastToFP8Args]
	for _, narrow := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			for _, shape := range [][]int{{5, 7}, {3}, {0, 2}} {
				cases = append(cases, opstest.Case[quant.CastToFP8Args]{Name: fmt.Sprintf("%v/%v/%v", narrow, l, shape), Make: func(s *opstest.Stage) quant.CastToFP8Args {
					return quant.CastToFP8Args{
						Input: s.In(l, d, shape...), FP8Tensor: 1, Output: s.Out(l, narrow, shape...),
						FP8MetaTensor: quant.FP8TensorMeta{
							Scale: s.Values(tensor.F32, 1, 300, 2), ScaleInv: s.In(l, tensor.F32, 3),
							AmaxHistory: s.Squares([]*tensor.Tensor{s.In(l, tensor.F32, 2, 3)})[0],
						},
					}
				}})
			}
		}
	}
	return cases
}
