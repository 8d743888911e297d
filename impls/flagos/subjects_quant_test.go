package flagos_test

import (
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
	}
}

// quantizer draws one of the quantisers of fp8.
func quantizer(r *rand.Rand) quant.Quantizer {
	q := quant.Quantizer{Scaling: []quant.Scaling{quant.DelayedScaling, quant.CurrentScaling, quant.BlockScaling, quant.MXFP8Scaling}[r.IntN(4)]}
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
		if turned {
			data = zeros(d, cols, rows)
		} else {
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
	return out
}

// blocky draws the length of an axis, sometimes of several of the largest blocks.
func blocky(r *rand.Rand) int {
	if r.IntN(6) == 0 {
		return 1 + r.IntN(280)
	}
	return 1 + r.IntN(40)
}

// axes draws the axes of a matrix.
func (m *maker) axes() (rows, cols int) {
	if m.big {
		return m.size(1, 300), m.size(1, 400)
	}
	return blocky(m.rng), blocky(m.rng)
}

func (m *maker) matrix() (x *tensor.Tensor, rows, cols int) {
	rows, cols = m.axes()
	return m.fill(m.out(rows, cols)), rows, cols
}

func buildQuantize(m *maker) quant.QuantizeArgs {
	x, rows, cols := m.matrix()
	q := quantizer(m.rng)
	return quant.QuantizeArgs{Tensor: x, Quantizer: q, Output: quantizedBy(m.rng, q, rows, cols, m.dense)}
}

func buildBgradQuantize(m *maker) quant.BgradQuantizeArgs {
	a := buildQuantize(m)
	return quant.BgradQuantizeArgs{Input: a.Tensor, Quantizer: a.Quantizer, Output: a.Output, DBias: m.dense(a.Tensor.DType(), a.Tensor.Shape().Cols())}
}

func buildSplitQuantize(m *maker) quant.SplitQuantizeArgs {
	var a quant.SplitQuantizeArgs
	total, cols := 0, m.size(200, 300)
	for range 1 + m.rng.IntN(4) {
		n, q := m.rng.IntN(3)*m.size(30, 100), quantizer(m.rng)
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
	a := dequantizeOf(m.rng, rows, cols, m.dense)
	a.Output = m.out(rows, cols)
	return a
}

// dequantizeOf makes arguments with random data and scales, without the output.
func dequantizeOf(r *rand.Rand, rows, cols int, zeros func(d tensor.DType, shape ...int) *tensor.Tensor) quant.DequantizeArgs {
	q := quantizer(r)
	z := quantizedBy(r, q, rows, cols, zeros)
	for _, x := range []*tensor.Tensor{z.Data, z.ScaleInv, z.ColumnwiseData, z.ColumnwiseScaleInv} {
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

func TestRandomQuantisationEqualsTheReference(t *testing.T) {
	compare(t, quant.Quantize, func(r *random) quant.QuantizeArgs {
		rows, cols, q := blocky(r.Rand), blocky(r.Rand), quantizer(r.Rand)
		return quant.QuantizeArgs{Tensor: r.stored(rows, cols), Quantizer: q, Output: quantizedBy(r.Rand, q, rows, cols, r.zeros)}
	})
	compare(t, quant.Dequantize, func(r *random) quant.DequantizeArgs {
		rows, cols := blocky(r.Rand), blocky(r.Rand)
		a := dequantizeOf(r.Rand, rows, cols, r.zeros)
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
