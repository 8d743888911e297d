package flagos_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// hostile fills x with numbers of all magnitudes: any bits, or numbers about one magnitude with
// multiples of small fractions, outliers, subnormal numbers, infinities and NaNs among them.
func hostile(r *rand.Rand, x []float32) {
	size := math.Exp2(float64(r.IntN(250) - 130))
	bits, odd := r.IntN(4) == 0, r.IntN(3) == 0
	zeros := r.IntN(3) == 0
	for i := range x {
		switch {
		case bits:
			x[i] = math.Float32frombits(r.Uint32() &^ (0x40000000 >> r.IntN(2)))
		case zeros && i/64%3 == 1:
			x[i] = 0
		case r.IntN(2) == 0:
			x[i] = float32(r.NormFloat64() * size)
		default:
			x[i] = float32(float64(r.IntN(97)-48) / 8 * size)
		}
		if !odd {
			continue
		}
		switch r.IntN(200) {
		case 0:
			x[i] = float32(math.NaN())
		case 1:
			x[i] = -float32(math.NaN())
		case 2:
			x[i] *= float32(math.Exp2(float64(r.IntN(40) - 20)))
		case 3:
			x[i] = math.Float32frombits(r.Uint32() & 0x807fffff)
		case 4:
			if r.IntN(20) == 0 {
				x[i] = float32(math.Inf(1 - 2*r.IntN(2)))
			}
		}
	}
}

func TestFP4HasTheBitsOfTheReference(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			rows, cols := 2+2*r.IntN(30), 2+2*r.IntN(60)
			if r.IntN(8) == 0 {
				rows, cols = cols+200*r.IntN(2), rows+500*r.IntN(2)
			}
			values := make([]float32, rows*cols)
			hostile(r, values)
			x, err := tensor.FromSlice(values, rows, cols)
			require.NoError(t, err)
			if r.IntN(3) == 0 {
				narrow := make([]tensor.BFloat16, len(values))
				for i, v := range values {
					narrow[i] = tensor.ToBFloat16(v)
				}
				x, err = tensor.FromSlice(narrow, rows, cols)
				require.NoError(t, err)
			}
			a := quant.QuantizeArgs{Tensor: x, Quantizer: quant.Quantizer{Scaling: quant.NVFP4Scaling, Block2D: r.IntN(3) == 0}}
			if q := &a.Quantizer; r.IntN(3) == 0 {
				q.Stochastic, q.Seed, q.Offset = true, r.Uint64(), -uint64(r.IntN(2)*r.IntN(50))
			}
			zeros := (&random{t: t}).zeros
			outputs := func() quant.Quantized {
				return quantizedBy(rand.New(rand.NewPCG(uint64(rows), uint64(cols))), a.Quantizer, rows, cols, zeros)
			}
			want, got := outputs(), outputs()
			a.Output = want
			require.NoError(t, runOf(t, slowSource, quant.Quantize)(opregistry.NewExec(nil, 0), a))
			a.Output = got
			require.NoError(t, runOf(t, fastSource, quant.Quantize)(opregistry.NewExec(nil, 0), a))
			for _, o := range [][2]*tensor.Tensor{
				{want.Amax, got.Amax}, {want.ScaleInv, got.ScaleInv}, {want.Data, got.Data},
				{want.ColumnwiseScaleInv, got.ColumnwiseScaleInv}, {want.ColumnwiseData, got.ColumnwiseData},
			} {
				if o[0] != nil {
					require.Equal(t, tensortest.Bytes(o[0]), tensortest.Bytes(o[1]), "[%d, %d]", rows, cols)
				}
			}
		}
	})
}

// Results that no cache holds are written past the caches.
func TestLargeTransposes(t *testing.T) {
	pool := parallel.New(2)
	defer pool.Close()
	e := opregistry.NewExec(pool, 0)
	t.Run("fp8_transpose", func(t *testing.T) {
		const rows, cols = 4096 + 70, 8192 + 40
		in, out := make([]tensor.Float8E4M3, rows*cols), make([]tensor.Float8E4M3, rows*cols)
		for i := range in {
			in[i] = tensor.Float8E4M3(i * 2654435761 >> 13)
		}
		x, err := tensor.FromSlice(in, rows, cols)
		require.NoError(t, err)
		y, err := tensor.FromSlice(out, cols, rows)
		require.NoError(t, err)
		require.NoError(t, runOf(t, fastSource, quant.FP8Transpose)(e, quant.FP8TransposeArgs{Input: x, Out: y}))
		for j := range cols {
			for i, v := range out[j*rows:][:rows] {
				if in[i*cols+j] != v {
					t.Fatalf("element [%d, %d] is %#x, want %#x", j, i, v, in[i*cols+j])
				}
			}
		}
	})
	t.Run("dequantize", func(t *testing.T) {
		const rows, cols = 2048 + 16, 2048 + 32
		r := rand.New(rand.NewPCG(1, 2))
		q := quant.Quantizer{Scaling: quant.NVFP4Scaling}
		a := dequantizeOf(r, q, rows, cols, (&random{t: t}).zeros)
		for a.Input.Data != nil {
			a = dequantizeOf(r, q, rows, cols, (&random{t: t}).zeros)
		}
		results := [2][]float32{make([]float32, rows*cols), make([]float32, rows*cols)}
		for i, source := range []opregistry.Source{slowSource, fastSource} {
			y, err := tensor.FromSlice(results[i], rows, cols)
			require.NoError(t, err)
			a.Output = y
			require.NoError(t, runOf(t, source, quant.Dequantize)(e, a))
		}
		require.True(t, slices.Equal(results[0], results[1]))
	})
}
