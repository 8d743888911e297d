package main

import (
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// rows and columns of what is rounded, which leaves the caches.
const quantRows, quantCols = tokens, vocab

// quantMaker makes operands of roundings.
type quantMaker struct{ *opbench.Maker }

func (m quantMaker) fp8(rows, cols int) *tensor.Tensor { return m.Filled(tensor.F8E4M3, 1, rows, cols) }
func (m quantMaker) fp4(rows, cols int) *tensor.Tensor { return m.Fresh(tensor.U8, rows, cols/2) }
func (m quantMaker) number() *tensor.Tensor            { return m.Filled(tensor.F32, 1, 1) }

func (m quantMaker) scales(s quant.Scaling, rows, cols int) *tensor.Tensor {
	switch s {
	case quant.NVFP4Scaling:
		return m.fp8(rows, cols)
	case quant.MXFP8Scaling:
		const one = 127 // in e8m0
		return m.Filled(tensor.U8, one, rows, cols)
	}
	return m.Filled(tensor.F32, 1, rows, cols)
}

func (m quantMaker) byRows(q quant.Quantizer) quant.Quantized {
	z, block := quant.Quantized{}, q.Scaling.BlockLen()
	if q.Scaling == quant.NVFP4Scaling {
		z.Data, z.Amax = m.fp4(quantRows, quantCols), m.number()
	} else {
		z.Data = m.fp8(quantRows, quantCols)
	}
	switch {
	case block == 0:
		z.ScaleInv, z.Scale, z.Amax = m.number(), m.number(), m.number()
	case q.Block2D:
		z.ScaleInv = m.scales(q.Scaling, quantRows/block, quantCols/block)
	default:
		z.ScaleInv = m.scales(q.Scaling, quantRows, quantCols/block)
	}
	return z
}

func (m quantMaker) byColumns(q quant.Quantizer) quant.Quantized {
	block := q.Scaling.BlockLen()
	switch q.Scaling {
	case quant.MXFP8Scaling:
		return quant.Quantized{ColumnwiseData: m.fp8(quantRows, quantCols), ColumnwiseScaleInv: m.scales(q.Scaling, quantRows/block, quantCols)}
	case quant.NVFP4Scaling:
		return quant.Quantized{ColumnwiseData: m.fp4(quantCols, quantRows), ColumnwiseScaleInv: m.scales(q.Scaling, quantCols, quantRows/block), Amax: m.number()}
	}
	return quant.Quantized{ColumnwiseData: m.fp8(quantCols, quantRows), ColumnwiseScaleInv: m.scales(q.Scaling, quantCols, quantRows/block)}
}

func (m quantMaker) bothWays(q quant.Quantizer) quant.Quantized {
	z, block := m.byRows(q), q.Scaling.BlockLen()
	switch {
	case block == 0:
		z.ColumnwiseData = m.fp8(quantCols, quantRows)
	case q.Block2D:
		z.ColumnwiseData, z.ColumnwiseScaleInv = m.fp8(quantCols, quantRows), m.scales(q.Scaling, quantCols/block, quantRows/block)
	default:
		t := m.byColumns(q)
		z.ColumnwiseData, z.ColumnwiseScaleInv = t.ColumnwiseData, t.ColumnwiseScaleInv
	}
	return z
}

// quantOps are the roundings of f32 and bf16 to fp8 and fp4 and back on [2048, 4096], which leaves
// the caches, and transposes of bytes on [2048, 4096] and [8192, 8192], of which only the second
// leaves them.
func (b *bench) quantOps() []contest {
	type layout = func(quantMaker, quant.Quantizer) quant.Quantized
	var all []contest
	quantize := func(name string, q quant.Quantizer, d tensor.DType, z layout) {
		all = append(all, call(b, "quant", "quantize/"+name, quant.Quantize, func(m *opbench.Maker) quant.QuantizeArgs {
			x := m.Filled(tensor.BF16, 1, quantRows, quantCols)
			if d == tensor.F32 {
				x = m.Random(quantRows, quantCols)
			}
			return quant.QuantizeArgs{Tensor: x, Quantizer: q, Output: z(quantMaker{m}, q)}
		}))
	}
	dequantize := func(name string, q quant.Quantizer, z layout) {
		all = append(all, call(b, "quant", "dequantize/"+name, quant.Dequantize, func(m *opbench.Maker) quant.DequantizeArgs {
			in := z(quantMaker{m}, q)
			in.Scale = nil
			if q.Scaling != quant.NVFP4Scaling {
				in.Amax = nil
			}
			return quant.DequantizeArgs{Input: in, Scaling: q.Scaling, Block2D: q.Block2D, Output: m.Random(quantRows, quantCols)}
		}))
	}
	byRows, byColumns, bothWays := quantMaker.byRows, quantMaker.byColumns, quantMaker.bothWays
	for _, k := range []struct {
		name string
		q    quant.Quantizer
	}{
		{"delayed", quant.Quantizer{Scaling: quant.DelayedScaling}},
		{"current", quant.Quantizer{Scaling: quant.CurrentScaling}},
		{"block", quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true}},
		{"block_2d", quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true, Block2D: true}},
		{"mxfp8", quant.Quantizer{Scaling: quant.MXFP8Scaling}},
		{"nvfp4", quant.Quantizer{Scaling: quant.NVFP4Scaling}},
	} {
		quantize(k.name, k.q, tensor.F32, byRows)
		quantize(k.name+"/bf16", k.q, tensor.BF16, byRows)
		quantize(k.name+"/both_ways", k.q, tensor.F32, bothWays)
		if k.q.Scaling != quant.DelayedScaling {
			dequantize(k.name, k.q, byRows)
		}
		if k.q.Scaling.BlockLen() > 0 && !k.q.Block2D {
			quantize(k.name+"/by_columns", k.q, tensor.F32, byColumns)
			dequantize(k.name+"/by_columns", k.q, byColumns)
		}
	}
	nvfp4 := quant.Quantizer{Scaling: quant.NVFP4Scaling}
	quantize("nvfp4/bf16/by_columns", nvfp4, tensor.BF16, byColumns)
	quantize("nvfp4/bf16/both_ways", nvfp4, tensor.BF16, bothWays)
	atRandom := quant.Quantizer{Scaling: quant.NVFP4Scaling, Stochastic: true}
	quantize("nvfp4/stochastic", atRandom, tensor.F32, byRows)
	quantize("nvfp4/stochastic/by_columns", atRandom, tensor.F32, byColumns)
	transpose := func(name string, rows, cols int) {
		all = append(all, call(b, "quant", name, quant.FP8Transpose, func(m *opbench.Maker) quant.FP8TransposeArgs {
			return quant.FP8TransposeArgs{Input: m.Fresh(tensor.F8E4M3, rows, cols), Out: m.Fresh(tensor.F8E4M3, cols, rows)}
		}))
	}
	transpose("fp8_transpose", quantRows, quantCols)
	transpose("fp8_transpose/8192", 8192, 8192)
	return append(all, call(b, "quant", "compute_amax", quant.ComputeAmax, func(m *opbench.Maker) quant.ComputeAmaxArgs {
		return quant.ComputeAmaxArgs{Input: m.Random(quantRows, quantCols), Amax: m.Fresh(tensor.F32, 1)}
	}))
}
