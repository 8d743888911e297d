package flagos_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func quantSubjects() []subject {
	tol := tensortest.Tolerance{Rel: 0x1p-21, ULP: 2}
	return []subject{
		subjectOf[quant.QuantizeArgs]{quant.Quantize, buildQuantize, tol},
		subjectOf[quant.DequantizeArgs]{quant.Dequantize, buildDequantize, tol},
		subjectOf[quant.BgradQuantizeArgs]{quant.BgradQuantize, buildBgradQuantize, summed},
		subjectOf[quant.SplitQuantizeArgs]{quant.SplitQuantize, buildSplitQuantize, tol},
		subjectOf[quant.MultiTensorQuantizeArgs]{quant.MultiTensorQuantize, buildMultiQuantize, tol},
		subjectOf[quant.ComputeAmaxArgs]{quant.ComputeAmax, func(m *maker) quant.ComputeAmaxArgs {
			return quant.ComputeAmaxArgs{Input: m.fill(m.out(m.size(9, 500), m.size(200, 300))), Amax: m.dense(tensor.F32, 1)}
		}, tensortest.Tolerance{}},
		subjectOf[quant.FP8TransposeArgs]{quant.FP8Transpose, buildTranspose, tensortest.Tolerance{}},
		subjectOf[quant.PartialAmaxArgs]{quant.FP8BlockScalingComputePartialAmax, buildPartialAmax, tensortest.Tolerance{}},
		subjectOf[quant.PartialCastArgs]{quant.FP8BlockScalingPartialCast, buildPartialCast, tol},
		subjectOf[quant.MXFP8PartialAmaxArgs]{quant.MXFP8ScalingComputePartialAmax, buildMXFP8Amax, tensortest.Tolerance{}},
		subjectOf[quant.MXFP8PartialCastArgs]{quant.MXFP8ScalingPartialCast, buildMXFP8Cast, tol},
		subjectOf[quant.NVFP42DPartialCastArgs]{quant.NVFP42DPartialCast, buildNVFP4Cast, tensortest.Tolerance{}},
		subjectOf[quant.NVFP42DMultiTensorTransposeArgs]{quant.NVFP42DMultiTensorTranspose, buildTilesTranspose, tensortest.Tolerance{}},
		subjectOf[quant.SwapFirstDimsArgs]{quant.SwapFirstDims, func(m *maker) quant.SwapFirstDimsArgs {
			a, b, c := m.size(20, 60), m.size(20, 60), m.size(30, 60)
			return quant.SwapFirstDimsArgs{Tensor: m.fill(m.out(a, b, c)), Out: m.out(b, a, c)}
		}, tensortest.Tolerance{}},
	}
}

// quantizer draws a quantiser.
func quantizer(r *rand.Rand) quant.Quantizer {
	q := quant.Quantizer{Scaling: []quant.Scaling{quant.DelayedScaling, quant.CurrentScaling, quant.BlockScaling, quant.MXFP8Scaling, quant.NVFP4Scaling}[r.IntN(5)]}
	if q.Scaling == quant.NVFP4Scaling {
		q.Block2D, q.Stochastic, q.Seed, q.Offset = r.IntN(2) == 0, r.IntN(2) == 0, r.Uint64(), r.Uint64()>>r.IntN(64)
	}
	if q.Scaling == quant.CurrentScaling || q.Scaling == quant.BlockScaling {
		q.ForcePow2Scales, q.AmaxEpsilon = r.IntN(2) == 0, 0.5*float32(r.IntN(2))
		q.Block2D = q.Scaling == quant.BlockScaling && r.IntN(2) == 0
	}
	return q
}

// quantizedBy makes the operands of a quantised matrix, by rows, by columns or both. The function
// makes a tensor of zeros.
func quantizedBy(r *rand.Rand, q quant.Quantizer, rows, cols int, zeros func(d tensor.DType, shape ...int) *tensor.Tensor) quant.Quantized {
	var out quant.Quantized
	d, b := []tensor.DType{tensor.F8E4M3, tensor.F8E5M2}[r.IntN(2)], q.Scaling.BlockLen()
	side := func(rows, cols int, turned bool) (data, scales *tensor.Tensor) {
		sd, scaleRows := tensor.F32, rows
		if q.Scaling == quant.MXFP8Scaling {
			sd = tensor.U8
		}
		switch {
		case q.Scaling == quant.NVFP4Scaling:
			sd, data = tensor.F8E4M3, zeros(tensor.U8, rows, cols/2)
		case turned:
			data = zeros(d, cols, rows)
		default:
			data = zeros(d, rows, cols)
		}
		switch {
		case b == 0:
			return data, nil
		case q.Block2D:
			scaleRows = (rows + b - 1) / b
		case turned:
			return data, zeros(sd, (cols+b-1)/b, rows)
		}
		return data, zeros(sd, scaleRows, (cols+b-1)/b)
	}
	which := r.IntN(3)
	if which != 0 {
		out.Data, out.ScaleInv = side(rows, cols, false)
	}
	if which != 1 {
		out.ColumnwiseData, out.ColumnwiseScaleInv = side(cols, rows, q.Scaling == quant.MXFP8Scaling)
	}
	if b == 0 {
		out.ScaleInv, out.Scale, out.Amax = zeros(tensor.F32, 1), zeros(tensor.F32, 1), zeros(tensor.F32, 1)
		out.Scale.Set(float64(1+r.IntN(300)), 0)
	}
	if q.Scaling == quant.NVFP4Scaling {
		out.Amax = zeros(tensor.F32, 1)
	}
	return out
}

// served returns the length of an axis that a quantiser accepts, which is n or one more.
func served(q quant.Quantizer, n int) int {
	if q.Scaling == quant.NVFP4Scaling {
		n += n % 2
	}
	return n
}

// blocky draws the length of an axis, sometimes of several of the largest blocks.
func blocky(r *rand.Rand) int {
	if r.IntN(6) == 0 {
		return 1 + r.IntN(280)
	}
	return 1 + r.IntN(40)
}

// axes draws the axes of a matrix, sometimes of several tiles in both directions.
func (m *maker) axes() (rows, cols int) {
	switch {
	case m.big:
		return m.size(1, 300), m.size(1, 400)
	case m.rng.IntN(150) == 0:
		return 1 + m.rng.IntN(700), 1 + m.rng.IntN(700)
	}
	return blocky(m.rng), blocky(m.rng)
}

func buildQuantize(m *maker) quant.QuantizeArgs {
	rows, cols := m.axes()
	q := quantizer(m.rng)
	rows, cols = served(q, rows), served(q, cols)
	return quant.QuantizeArgs{Tensor: m.fill(m.out(rows, cols)), Quantizer: q, Output: quantizedBy(m.rng, q, rows, cols, m.dense)}
}

func buildBgradQuantize(m *maker) quant.BgradQuantizeArgs {
	a := buildQuantize(m)
	return quant.BgradQuantizeArgs{Input: a.Tensor, Quantizer: a.Quantizer, Output: a.Output, DBias: m.dense(a.Tensor.DType(), a.Tensor.Shape().Cols())}
}

func buildSplitQuantize(m *maker) quant.SplitQuantizeArgs {
	var a quant.SplitQuantizeArgs
	total, cols := 0, 2*m.size(100, 150)
	for range 1 + m.rng.IntN(4) {
		q := quantizer(m.rng)
		n := served(q, m.rng.IntN(3)*m.size(30, 100))
		a.SplitSections, a.QuantizerList = append(a.SplitSections, n), append(a.QuantizerList, q)
		a.OutputList = append(a.OutputList, quantizedBy(m.rng, q, n, cols, m.dense))
		total += n
	}
	a.Tensor = m.fill(m.out(total, cols))
	return a
}

func buildMultiQuantize(m *maker) quant.MultiTensorQuantizeArgs {
	var a quant.MultiTensorQuantizeArgs
	for range 1 + m.rng.IntN(4) {
		one := buildQuantize(m)
		a.TensorList, a.QuantizerList, a.OutputList = append(a.TensorList, one.Tensor), append(a.QuantizerList, one.Quantizer), append(a.OutputList, one.Output)
	}
	return a
}

func buildDequantize(m *maker) quant.DequantizeArgs {
	rows, cols := m.axes()
	q := quantizer(m.rng)
	rows, cols = served(q, rows), served(q, cols)
	a := dequantizeOf(m.rng, q, rows, cols, m.dense)
	a.Output = m.out(rows, cols)
	return a
}

// dequantizeOf makes arguments with random data and scales, without the output.
func dequantizeOf(r *rand.Rand, q quant.Quantizer, rows, cols int, zeros func(d tensor.DType, shape ...int) *tensor.Tensor) quant.DequantizeArgs {
	z := quantizedBy(r, q, rows, cols, zeros)
	for _, x := range []*tensor.Tensor{z.Data, z.ScaleInv, z.ColumnwiseData, z.ColumnwiseScaleInv, z.Amax} {
		if x == nil {
			continue
		}
		values := make([]float64, x.NumElements())
		for i := range values {
			values[i] = r.NormFloat64()
			if x.DType() == tensor.U8 {
				values[i] = float64(100 + r.IntN(50))
			}
		}
		if err := x.SetFloat64s(values); err != nil {
			panic(err)
		}
	}
	return quant.DequantizeArgs{Input: z, Scaling: q.Scaling, Block2D: q.Block2D}
}

func buildTranspose(m *maker) quant.FP8TransposeArgs {
	rows, cols := m.size(150, 300), m.size(150, 300)
	a := quant.FP8TransposeArgs{Input: m.dense(tensor.F8E4M3, rows, cols), Out: m.dense(tensor.F8E4M3, cols, rows)}
	m.fill(a.Input)
	return a
}

// shard draws the axes of a matrix, and a shard of it that begins at an even element.
func (m *maker) shard() (x *tensor.Tensor, h, w, start int) {
	h, w = m.size(90, 300), 2*m.size(60, 150)
	start = 2 * m.rng.IntN(h*w/2+1)
	n := h*w - start
	if !m.big {
		n = m.rng.IntN(n + 1)
	}
	return m.fill(m.dense(m.dtype, n)), h, w, start
}

// tiles makes a matrix with a number for each tile.
func (m *maker) tiles(d tensor.DType, h, height, w, width int) *tensor.Tensor {
	return m.dense(d, (h+height-1)/height, (w+width-1)/width)
}

// codes fills a matrix with exponents of E8M0.
func (m *maker) codes(x *tensor.Tensor) *tensor.Tensor {
	values := make([]float64, x.NumElements())
	for i := range values {
		values[i] = float64(m.rng.IntN(256))
	}
	return set(m.t, x, values...)
}

func buildPartialAmax(m *maker) quant.PartialAmaxArgs {
	x, h, w, start := m.shard()
	b := 1 + m.rng.IntN(130)
	return quant.PartialAmaxArgs{Tensor: x, Amax: m.tiles(tensor.F32, h, b, w, b), H: h, W: w, StartOffset: start, BlockLen: b}
}

func buildPartialCast(m *maker) quant.PartialCastArgs {
	x, h, w, start := m.shard()
	b, d := 1+m.rng.IntN(130), []tensor.DType{tensor.F8E4M3, tensor.F8E5M2}[m.rng.IntN(2)]
	return quant.PartialCastArgs{
		Inp: x, Out: m.dense(d, x.NumElements()), Scale: m.fill(m.tiles(tensor.F32, h, b, w, b)), H: h, W: w, StartOffset: start, BlockLen: b,
	}
}

func buildMXFP8Amax(m *maker) quant.MXFP8PartialAmaxArgs {
	x, h, w, start := m.shard()
	return quant.MXFP8PartialAmaxArgs{
		Input: x, AmaxRowwise: m.tiles(m.dtype, h, 1, w, 32), AmaxColwise: m.tiles(m.dtype, h, 32, w, 1), Rows: h, Cols: w, StartOffset: start,
	}
}

func buildMXFP8Cast(m *maker) quant.MXFP8PartialCastArgs {
	x, h, w, start := m.shard()
	n := x.NumElements()
	return quant.MXFP8PartialCastArgs{
		Input: x, OutputRowwise: m.dense(tensor.F8E4M3, n), OutputColwise: m.dense(tensor.F8E4M3, n), ScaleInvRowwise: m.codes(m.tiles(tensor.U8, h, 1, w, 32)),
		ScaleInvColwise: m.codes(m.tiles(tensor.U8, h, 32, w, 1)), Rows: h, Cols: w, StartOffset: start,
	}
}

func buildNVFP4Cast(m *maker) quant.NVFP42DPartialCastArgs {
	x, h, w, start := m.shard()
	b, global := 16, 1000*m.rng.Float64()
	switch m.rng.IntN(6) {
	case 0:
		b = 1 + m.rng.IntN(40)
	case 1:
		global = []float64{0, -1, 1e-40, 1e-36, math.MaxFloat32, math.Inf(1), math.NaN()}[m.rng.IntN(7)]
	}
	scale := m.tiles(tensor.F32, h, b, w, b)
	values := make([]float64, scale.NumElements())
	for i := range values {
		if values[i] = 500*m.rng.Float64() - 20; m.rng.IntN(20) == 0 {
			values[i] = []float64{0, 1e-3, 2e-3, math.Inf(1), math.NaN()}[m.rng.IntN(5)]
		}
	}
	return quant.NVFP42DPartialCastArgs{
		Inp: x, Out: m.codes(m.dense(tensor.U8, (x.NumElements()+1)/2)), Scale: set(m.t, scale, values...), GlobalScale: m.number(global),
		H: h, W: w, StartOffset: start, BlockLen: b,
	}
}

func buildTilesTranspose(m *maker) quant.NVFP42DMultiTensorTransposeArgs {
	var a quant.NVFP42DMultiTensorTransposeArgs
	for range 1 + m.rng.IntN(3) {
		rows, cols := 2*m.size(70, 200), 2*m.size(70, 200)
		a.RowwiseDataList = append(a.RowwiseDataList, m.codes(m.dense(tensor.U8, rows, cols/2)))
		a.ColumnwiseDataList = append(a.ColumnwiseDataList, m.dense(tensor.U8, cols, rows/2))
		a.RowwiseScaleInvList = append(a.RowwiseScaleInvList, m.fill(m.dense(tensor.F8E4M3, rows+m.rng.IntN(3), (cols+15)/16)))
		a.ColumnwiseScaleInvList = append(a.ColumnwiseScaleInvList, m.dense(tensor.F8E4M3, cols+m.rng.IntN(20), (rows+15)/16))
	}
	return a
}

func TestRandomShardsEqualTheReference(t *testing.T) {
	compare(t, quant.FP8BlockScalingComputePartialAmax, made(buildPartialAmax))
	compare(t, quant.FP8BlockScalingPartialCast, made(buildPartialCast))
	compare(t, quant.MXFP8ScalingComputePartialAmax, made(buildMXFP8Amax))
	compare(t, quant.MXFP8ScalingPartialCast, made(buildMXFP8Cast))
	compare(t, quant.NVFP42DPartialCast, made(buildNVFP4Cast))
}

func TestRandomQuantisationEqualsTheReference(t *testing.T) {
	compare(t, quant.Quantize, func(r *random) quant.QuantizeArgs {
		q := quantizer(r.Rand)
		rows, cols := served(q, blocky(r.Rand)), served(q, blocky(r.Rand))
		return quant.QuantizeArgs{Tensor: r.stored(rows, cols), Quantizer: q, Output: quantizedBy(r.Rand, q, rows, cols, r.zeros)}
	})
	compare(t, quant.Dequantize, func(r *random) quant.DequantizeArgs {
		q := quantizer(r.Rand)
		rows, cols := served(q, blocky(r.Rand)), served(q, blocky(r.Rand))
		a := dequantizeOf(r.Rand, q, rows, cols, r.zeros)
		a.Output = r.stored(rows, cols)
		return a
	})
}

func (r *random) zeros(d tensor.DType, shape ...int) *tensor.Tensor {
	r.t.Helper()
	x, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
	require.NoError(r.t, err)
	return x
}
