package reference_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestQuantizeWhole(t *testing.T) {
	t.Parallel()
	x := of(t, tensor.F32, []int{2, 2}, 1, -7, 0.3, nan)
	delayed := quant.Quantized{
		Data: out(t, tensor.F8E4M3, 2, 2), ColumnwiseData: out(t, tensor.F8E4M3, 2, 2),
		ScaleInv: out(t, tensor.F32, 1), Scale: f32(t, 128), Amax: f32(t, 9),
	}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: x, Quantizer: quant.Quantizer{Scaling: quant.DelayedScaling}, Output: delayed})
	want(t, delayed.Data, 128, -448, 40, nan) // 38.4 lies between 36 and 40
	want(t, delayed.ColumnwiseData, 128, 40, -448, nan)
	want(t, delayed.ScaleInv, 1.0/128)
	want(t, delayed.Amax, 9)

	current := quant.Quantized{Data: out(t, tensor.F8E4M3, 2, 2), ScaleInv: out(t, tensor.F32, 1), Scale: out(t, tensor.F32, 1), Amax: out(t, tensor.F32, 1)}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: x, Quantizer: quant.Quantizer{Scaling: quant.CurrentScaling}, Output: current})
	want(t, current.Amax, 7)
	want(t, current.Scale, 64)
	want(t, current.ScaleInv, 1.0/64)
	want(t, current.Data, 64, -448, 20, nan) // 19.2 lies between 18 and 20

	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: f32(t, 1, 2, 3, 4), Noop: f32(t, 1), Quantizer: quant.Quantizer{Scaling: quant.CurrentScaling}, Output: quant.Quantized{
		Data: out(t, tensor.F8E4M3, 4), ScaleInv: current.ScaleInv, Scale: current.Scale, Amax: current.Amax,
	}})
	want(t, current.Amax, 7)
}

func TestQuantizeMXFP8(t *testing.T) {
	t.Parallel()
	v := make([]float64, 2*33)
	v[0], v[31], v[32], v[33] = 449, 1, 3, -0.25
	z := quant.Quantized{
		Data: out(t, tensor.F8E4M3, 2, 33), ScaleInv: out(t, tensor.U8, 2, 2),
		ColumnwiseData: out(t, tensor.F8E4M3, 2, 33), ColumnwiseScaleInv: out(t, tensor.U8, 1, 33),
	}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: of(t, tensor.F32, []int{2, 33}, v...), Quantizer: quant.Quantizer{Scaling: quant.MXFP8Scaling}, Output: z})
	// 449/448 → 2¹, 3/448 → 2⁻⁷, 0.25/448 → 2⁻¹⁰, 0 → 2⁻¹²⁷.
	want(t, z.ScaleInv, 128, 120, 117, 0)
	assert.InDelta(t, 224, z.Data.At(0, 0), 0, "224.5 is nearest to 224")
	assert.InDelta(t, 0.5, z.Data.At(0, 31), 0)
	assert.InDelta(t, 384, z.Data.At(0, 32), 0)
	assert.InDelta(t, -256, z.Data.At(1, 0), 0)
	assert.InDelta(t, 128, z.ColumnwiseScaleInv.At(0, 0), 0)
	assert.InDelta(t, 119, z.ColumnwiseScaleInv.At(0, 31), 0)
	assert.InDelta(t, 256, z.ColumnwiseData.At(0, 31), 0)
	assert.InDelta(t, -0.125, z.ColumnwiseData.At(1, 0), 0)
}

func TestQuantizeBlocks(t *testing.T) {
	t.Parallel()
	x := make([]float64, 2*130)
	x[0], x[129], x[130] = 2, 448, 7
	in := of(t, tensor.F32, []int{2, 130}, x...)
	lines := quant.Quantized{Data: out(t, tensor.F8E4M3, 2, 130), ScaleInv: out(t, tensor.F32, 2, 2)}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: in, Quantizer: quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true}, Output: lines})
	want(t, lines.ScaleInv, 1.0/128, 1, 1.0/64, 1) // a block of zeros has scale 1
	assert.InDelta(t, 256, lines.Data.At(0, 0), 0)
	assert.InDelta(t, 448, lines.Data.At(1, 0), 0)
	tiles := quant.Quantized{ColumnwiseData: out(t, tensor.F8E4M3, 130, 2), ColumnwiseScaleInv: out(t, tensor.F32, 2, 1)}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: in, Quantizer: quant.Quantizer{Scaling: quant.BlockScaling, Block2D: true}, Output: tiles})
	want(t, tiles.ColumnwiseScaleInv, 1.0/64, 1)
	assert.InDelta(t, 448, tiles.ColumnwiseData.At(0, 1), 0)
	assert.InDelta(t, 128, tiles.ColumnwiseData.At(0, 0), 0)
}

func TestQuantizeNVFP4(t *testing.T) {
	t.Parallel()
	v := make([]float64, 2*18)
	v[0], v[1], v[2], v[3], v[16], v[17] = 6, -6, 3, 1.25, 0.75, -0.25
	z := quant.Quantized{Data: out(t, tensor.U8, 2, 9), ScaleInv: out(t, tensor.F8E4M3, 2, 2), Amax: out(t, tensor.F32, 1)}
	run(t, quant.Quantize, quant.QuantizeArgs{Tensor: of(t, tensor.F32, []int{2, 18}, v...), Quantizer: quant.Quantizer{Scaling: quant.NVFP4Scaling}, Output: z})
	want(t, z.Amax, 6) // S = 448
	want(t, z.ScaleInv, 448, 56, 0, 0)
	// 6, −6 | 3, 1.25: a tie that goes to 1 | …  in the second block the scale is 8: 6, −2.
	assert.Equal(t, []float64{0xf7, 0x25, 0, 0, 0, 0, 0, 0, 0xc7}, z.Data.Float64s()[:9])
	back := out(t, tensor.F32, 2, 18)
	run(t, quant.Dequantize, quant.DequantizeArgs{Input: z, Scaling: quant.NVFP4Scaling, Output: back})
	v[3] = 1
	want(t, back, v...)
}

// formats returns scalings with the error that rounding to their data may cause, relative to an
// element and in units of the scale of an element.
func formats() []struct {
	q        quant.Quantizer
	data     tensor.DType
	rel, abs float64
} {
	return []struct {
		q        quant.Quantizer
		data     tensor.DType
		rel, abs float64
	}{
		{quant.Quantizer{Scaling: quant.CurrentScaling}, tensor.F8E4M3, 0x1p-4, 0x1p-10},
		{quant.Quantizer{Scaling: quant.CurrentScaling}, tensor.F8E5M2, 0x1p-3, 0x1p-17},
		{quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true}, tensor.F8E4M3, 0x1p-4, 0x1p-10},
		{quant.Quantizer{Scaling: quant.BlockScaling, Block2D: true}, tensor.F8E4M3, 0x1p-4, 0x1p-10},
		{quant.Quantizer{Scaling: quant.MXFP8Scaling}, tensor.F8E4M3, 0x1p-4, 0x1p-10},
		{quant.Quantizer{Scaling: quant.MXFP8Scaling}, tensor.F8E5M2, 0x1p-3, 0x1p-17},
		{quant.Quantizer{Scaling: quant.NVFP4Scaling}, tensor.U8, 0.25 + 1.0/16, 0.25},
		{quant.Quantizer{Scaling: quant.NVFP4Scaling, Block2D: true}, tensor.U8, 0.25 + 1.0/16, 0.25},
		{quant.Quantizer{Scaling: quant.NVFP4Scaling, Stochastic: true, Seed: 3}, tensor.U8, 0.5 + 1.0/16, 0.5},
	}
}

// quantized makes the operands for a matrix of 36×50.
func quantized(t *testing.T, q quant.Quantizer, d tensor.DType, columns bool) quant.Quantized {
	t.Helper()
	rows, cols := 36, 50
	if columns {
		rows, cols = cols, rows
	}
	width, scale := cols, tensor.F32
	b := q.Scaling.BlockLen()
	switch q.Scaling {
	case quant.CurrentScaling:
		z := quant.Quantized{ScaleInv: out(t, tensor.F32, 1), Scale: out(t, tensor.F32, 1), Amax: out(t, tensor.F32, 1), Data: out(t, d, rows, cols)}
		if columns {
			z.Data, z.ColumnwiseData = nil, z.Data
		}
		return z
	case quant.MXFP8Scaling:
		scale = tensor.U8
	case quant.NVFP4Scaling:
		width, scale = cols/2, tensor.F8E4M3
	}
	scaleRows := rows
	if q.Block2D {
		scaleRows = (rows + b - 1) / b
	}
	z := quant.Quantized{}
	if q.Scaling == quant.NVFP4Scaling {
		z.Amax = out(t, tensor.F32, 1)
	}
	switch data := out(t, d, rows, width); {
	case columns && q.Scaling == quant.MXFP8Scaling:
		z.ColumnwiseData, z.ColumnwiseScaleInv = out(t, d, cols, rows), out(t, scale, (cols+b-1)/b, rows)
	case columns:
		z.ColumnwiseData, z.ColumnwiseScaleInv = data, out(t, scale, scaleRows, (cols+b-1)/b)
	default:
		z.Data, z.ScaleInv = data, out(t, scale, scaleRows, (cols+b-1)/b)
	}
	return z
}

// Dequantize restores values as closely as the format allows.
func TestQuantizeAndBack(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		for _, columns := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v/%v/%v", f.q, f.data, columns), func(t *testing.T) {
				t.Parallel()
				x := tensortest.Random(t, 5, tensor.F32, 36, 50)
				z := quantized(t, f.q, f.data, columns)
				run(t, quant.Quantize, quant.QuantizeArgs{Tensor: x, Quantizer: f.q, Output: z})
				y := out(t, tensor.F64, 36, 50)
				run(t, quant.Dequantize, quant.DequantizeArgs{Input: z, Scaling: f.q.Scaling, Block2D: f.q.Block2D, Output: y})
				largest := map[tensor.DType]float64{tensor.F8E4M3: 448, tensor.F8E5M2: 57344, tensor.U8: 6}[f.data]
				unit := 2 * 1.07 / largest // of an amax of 1; a power of two may be off by 2
				got := y.Float64s()
				moved := 0
				for i, v := range x.Float64s() {
					require.LessOrEqual(t, math.Abs(got[i]-v), f.rel*math.Abs(v)+f.abs*unit, "element %d: %v for %v", i, got[i], v)
					if got[i] != v {
						moved++
					}
				}
				assert.Greater(t, moved, 1000, "rounding is visible")
			})
		}
	}
}

// Stochastic rounding is right on average, and uses the documented words.
func TestStochasticRounding(t *testing.T) {
	t.Parallel()
	const n = 4096
	v := make([]float64, n)
	for i := range v {
		v[i] = 1.75 // between 1.5 and 2
		if i%16 == 0 {
			v[i] = 6
		}
	}
	quantize := func(offset uint64) []float64 {
		z := quant.Quantized{Data: out(t, tensor.U8, 1, n/2), ScaleInv: out(t, tensor.F8E4M3, 1, n/16), Amax: out(t, tensor.F32, 1)}
		run(t, quant.Quantize, quant.QuantizeArgs{
			Tensor: of(t, tensor.F32, []int{1, n}, v...), Quantizer: quant.Quantizer{Scaling: quant.NVFP4Scaling, Stochastic: true, Seed: 42, Offset: offset}, Output: z,
		})
		y := out(t, tensor.F32, 1, n)
		run(t, quant.Dequantize, quant.DequantizeArgs{Input: z, Scaling: quant.NVFP4Scaling, Output: y})
		return y.Float64s()
	}
	up := 0
	y := quantize(0)
	for i, got := range y {
		switch {
		case i%16 == 0:
			require.InDelta(t, 6, got, 0)
		case got == 2:
			up++
		default:
			require.InDelta(t, 1.5, got, 0)
		}
	}
	assert.InDelta(t, 0.5, float64(up)/(n*15/16), 0.05)
	later := quantize(5) // blocks of 4 words
	for i := 32; i < n-32; i++ {
		if i%16 != 0 && (i+20)%16 != 0 {
			require.InDelta(t, y[i+20], later[i], 0, "element %d", i)
		}
	}
}

// The first words of Philox4x32-10 with a zero key and counter are published with the algorithm.
func TestStochasticRoundingTakesThePublishedWords(t *testing.T) {
	t.Parallel()
	words := []float64{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}
	const little = 1e-3
	for _, above := range []bool{false, true} {
		v := []float64{0, 0, 0, 0, 6, 6}
		for i, word := range words {
			share := word*0x1p-32 - little
			if above {
				share += 2 * little
			}
			v[i] = 4 + 2*share // between 4 and 6
		}
		z := quant.Quantized{Data: out(t, tensor.U8, 1, 3), ScaleInv: out(t, tensor.F8E4M3, 1, 1), Amax: out(t, tensor.F32, 1)}
		run(t, quant.Quantize, quant.QuantizeArgs{
			Tensor: of(t, tensor.F64, []int{1, 6}, v...), Quantizer: quant.Quantizer{Scaling: quant.NVFP4Scaling, Stochastic: true}, Output: z,
		})
		if above {
			want(t, z.Data, 0x77, 0x77, 0x77)
		} else {
			want(t, z.Data, 0x66, 0x66, 0x77)
		}
	}
}

func TestBgradAndGroups(t *testing.T) {
	t.Parallel()
	mx := quant.Quantizer{Scaling: quant.MXFP8Scaling}
	one := func(rows int) quant.Quantized {
		return quant.Quantized{Data: out(t, tensor.F8E4M3, rows, 2), ScaleInv: out(t, tensor.U8, rows, 1)}
	}
	x := of(t, tensor.F32, []int{3, 2}, 1, 2, 3, 4, 5, -600)
	bgrad := quant.BgradQuantizeArgs{Input: x, Quantizer: mx, Output: one(3), DBias: out(t, tensor.F32, 2)}
	run(t, quant.BgradQuantize, bgrad)
	want(t, bgrad.DBias, 9, -594)
	want(t, bgrad.Output.ScaleInv, 120, 121, 128)
	want(t, bgrad.Output.Data, 128, 256, 192, 256, 2.5, -288) // −300 lies between −288 and −320

	alone := quant.BgradQuantizeArgs{Input: x, DBias: out(t, tensor.F32, 2)}
	run(t, quant.BgradQuantize, alone)
	want(t, alone.DBias, 9, -594)

	group := quant.BgradGroupQuantizeArgs{
		Tensor: x, Quantizer: mx, FirstDims: []int{1, 0, 2}, OutputList: []quant.Quantized{one(1), one(0), one(2)}, DBias: out(t, tensor.F32, 3, 2),
	}
	run(t, quant.BgradGroupQuantize, group)
	want(t, group.DBias, 1, 2, 0, 0, 8, -596)
	want(t, group.OutputList[0].Data, 128, 256)
	want(t, group.OutputList[2].ScaleInv, 121, 128)
}

func TestCastToFP8(t *testing.T) {
	t.Parallel()
	a := quant.CastToFP8Args{
		Input: f32(t, 1, -500), Output: out(t, tensor.F8E4M3, 2), FP8Tensor: 1,
		FP8MetaTensor: quant.FP8TensorMeta{Scale: f32(t, 1, 2, 4), ScaleInv: f32(t, 9, 9, 9), AmaxHistory: of(t, tensor.F32, []int{2, 3}, 1, 2, 3, 4, 5, 6)},
	}
	run(t, quant.CastToFP8, a)
	want(t, a.Output, 2, -448)
	want(t, a.FP8MetaTensor.ScaleInv, 9, 0.5, 9)
	want(t, a.FP8MetaTensor.AmaxHistory, 1, 500, 3, 4, 5, 6)
}
