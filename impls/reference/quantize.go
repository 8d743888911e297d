package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// matrix is a copy of a tensor's elements as rows.
type matrix struct {
	rows, cols int
	v          []float64
}

func matrixOf(t *tensor.Tensor) matrix {
	return matrix{t.Shape().Rows(), t.Shape().Cols(), t.Float64s()}
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

func (m matrix) at(r, c int) float64 { return m.v[r*m.cols+c] }

func (m matrix) set(r, c int, v float64) { m.v[r*m.cols+c] = v }

func (m matrix) transposed() matrix {
	t := newMatrix(m.cols, m.rows)
	for r := range m.rows {
		for c := range m.cols {
			t.set(c, r, m.at(r, c))
		}
	}
	return t
}

// grid cuts a matrix into blocks of height×width elements.
type grid struct{ height, width int }

// raise raises an element to the magnitude of v if that is larger; a NaN counts as 0, as in amax.
func (m matrix) raise(r, c int, v float64) { m.set(r, c, max(m.at(r, c), amaxOf([]float64{v}))) }

// gridOf returns the blocks of a scaling along rows.
func gridOf(s quant.Scaling, square bool) grid {
	b := s.BlockLen()
	if square {
		return grid{b, b}
	}
	return grid{1, b}
}

// amaxes returns the largest magnitude of each block.
func (g grid) amaxes(m matrix) matrix {
	out := newMatrix((m.rows+g.height-1)/g.height, (m.cols+g.width-1)/g.width)
	for r := range m.rows {
		for c := range m.cols {
			out.raise(r/g.height, c/g.width, m.at(r, c))
		}
	}
	return out
}

// saturated limits v to the range of an fp8 dtype, whose conversion then rounds it.
func saturated(v float64, d tensor.DType) float64 {
	if math.IsNaN(v) {
		return v
	}
	return max(-fp8Max(d), min(v, fp8Max(d)))
}

// castDelayed stores values times a scale in fp8.
func castDelayed(out *tensor.Tensor, v []float64, scale float64) error {
	scaled := make([]float64, len(v))
	for i, x := range v {
		scaled[i] = saturated(x*scale, out.DType())
	}
	return out.SetFloat64s(scaled)
}

// quantize implements quant.Quantize.
func quantize(a quant.QuantizeArgs) error {
	if a.Noop != nil && number(a.Noop) == 1 {
		return nil
	}
	return quantizeMatrix(matrixOf(a.Tensor), a.Quantizer, a.Output)
}

func quantizeMatrix(x matrix, q quant.Quantizer, out quant.Quantized) error {
	switch q.Scaling {
	case quant.NoScaling:
		return nil
	case quant.DelayedScaling, quant.CurrentScaling:
		return quantizeWhole(x, q, out)
	}
	global := amaxOf(x.v)
	if q.Scaling == quant.NVFP4Scaling {
		if err := out.Amax.SetFloat64s([]float64{global}); err != nil {
			return err
		}
	}
	if out.Data != nil {
		data, inv := quantizeBlocks(x, q, global, out.Data.DType(), 0)
		if err := store(out.Data, data, out.ScaleInv, inv); err != nil {
			return err
		}
	}
	if out.ColumnwiseData != nil {
		data, inv := quantizeBlocks(x.transposed(), q, global, out.ColumnwiseData.DType(), 1)
		if q.Scaling == quant.MXFP8Scaling {
			data, inv = data.transposed(), inv.transposed()
		}
		return store(out.ColumnwiseData, data, out.ColumnwiseScaleInv, inv)
	}
	return nil
}

func store(data *tensor.Tensor, d matrix, scaleInv *tensor.Tensor, inv matrix) error {
	if err := data.SetFloat64s(d.v); err != nil {
		return err
	}
	return scaleInv.SetFloat64s(inv.v)
}

// quantizeWhole quantises with one scale.
func quantizeWhole(x matrix, q quant.Quantizer, out quant.Quantized) error {
	d := out.Data
	if d == nil {
		d = out.ColumnwiseData
	}
	largest := amaxOf(x.v)
	if q.Scaling == quant.DelayedScaling {
		largest = max(largest, number(out.Amax))
	} else if err := out.Scale.SetFloat64s([]float64{scaleOf(largest, fp8Max(d.DType()), float64(q.AmaxEpsilon), q.ForcePow2Scales)}); err != nil {
		return err
	}
	scale := number(out.Scale)
	if out.Data != nil {
		if err := castDelayed(out.Data, x.v, scale); err != nil {
			return err
		}
	}
	if out.ColumnwiseData != nil {
		if err := castDelayed(out.ColumnwiseData, x.transposed().v, scale); err != nil {
			return err
		}
	}
	if err := out.Amax.SetFloat64s([]float64{largest}); err != nil {
		return err
	}
	return out.ScaleInv.SetFloat64s([]float64{1 / scale})
}

// quantizeBlocks quantises along rows. It returns the elements of the data and of the scales as
// their tensors store them: values of fp8, bytes of u8.
func quantizeBlocks(x matrix, q quant.Quantizer, global float64, d tensor.DType, stream uint32) (data, inv matrix) {
	g := gridOf(q.Scaling, q.Block2D)
	inv = g.amaxes(x)
	scale := newMatrix(inv.rows, inv.cols)
	encode := encodingScale(global)
	for i, largest := range inv.v {
		switch q.Scaling {
		case quant.BlockScaling:
			scale.v[i] = scaleOf(largest, fp8Max(d), float64(q.AmaxEpsilon), q.ForcePow2Scales)
			inv.v[i] = 1 / scale.v[i]
		case quant.MXFP8Scaling:
			code := tensor.CeilFloat8E8M0(largest / fp8Max(d))
			scale.v[i] = 1 / float64(code.Float32())
			inv.v[i] = float64(code)
		default:
			inv.v[i] = e4m3(min(largest/6*encode, math.MaxFloat32))
			scale.v[i] = min(encode/inv.v[i], math.MaxFloat32)
		}
	}
	if q.Scaling == quant.NVFP4Scaling {
		return packed(x, scale, g, q, stream), inv
	}
	data = newMatrix(x.rows, x.cols)
	for r := range x.rows {
		for c := range x.cols {
			data.set(r, c, saturated(x.at(r, c)*scale.at(r/g.height, c/g.width), d))
		}
	}
	return data, inv
}

// encodingScale returns the S of quant.Quantize.
func encodingScale(global float64) float64 {
	if global == 0 || math.IsInf(global, 0) {
		return 1
	}
	return toF32(min(2688/global, math.MaxFloat32))
}

// e4m3 returns v saturated and rounded to E4M3.
func e4m3(v float64) float64 {
	x, err := tensor.FromSlice(make([]tensor.Float8E4M3, 1))
	if err != nil {
		panic("BUG: reference: " + err.Error())
	}
	x.Set(saturated(v, tensor.F8E4M3), 0)
	return x.At(0)
}

// packed returns E2M1 elements, two per byte.
func packed(x, scale matrix, g grid, q quant.Quantizer, stream uint32) matrix {
	out := newMatrix(x.rows, x.cols/2)
	for r := range x.rows {
		for c := range x.cols {
			v := x.at(r, c) * scale.at(r/g.height, c/g.width)
			code := tensor.ToFloat4E2M1(v)
			if q.Stochastic {
				code = stochastic(v, word(q.Seed, q.Offset, stream, r*x.cols+c))
			}
			out.set(r, c/2, out.at(r, c/2)+float64(uint(code)<<(c%2*4)))
		}
	}
	return out
}

// dequantize implements quant.Dequantize.
func dequantize(a quant.DequantizeArgs) error {
	out := newMatrix(a.Output.Shape().Rows(), a.Output.Shape().Cols())
	columns := a.Input.Data == nil
	data, inv := a.Input.Data, a.Input.ScaleInv
	if columns {
		data = a.Input.ColumnwiseData
		if a.Scaling.BlockLen() > 0 {
			inv = a.Input.ColumnwiseScaleInv
		}
		out = out.transposed()
	}
	d, s := matrixOf(data), matrixOf(inv)
	if columns && a.Scaling == quant.MXFP8Scaling {
		d, s = d.transposed(), s.transposed()
	}
	g := gridOf(a.Scaling, a.Block2D)
	for r := range out.rows {
		for c := range out.cols {
			var v float64
			switch a.Scaling {
			case quant.DelayedScaling, quant.CurrentScaling:
				v = d.at(r, c) * number(inv)
			case quant.BlockScaling:
				v = d.at(r, c) * s.at(r/g.height, c/g.width)
			case quant.MXFP8Scaling:
				v = d.at(r, c) * float64(tensor.Float8E8M0(s.at(r/g.height, c/g.width)).Float32())
			default:
				code := tensor.Float4E2M1(uint8(d.at(r, c/2)) >> (c % 2 * 4))
				v = float64(code.Float32()) * s.at(r/g.height, c/g.width) * number(a.Input.Amax) / 2688
			}
			out.set(r, c, v)
		}
	}
	if columns {
		out = out.transposed()
	}
	return a.Output.SetFloat64s(out.v)
}

// bgradQuantize implements quant.BgradQuantize.
func bgradQuantize(a quant.BgradQuantizeArgs) error {
	x := matrixOf(a.Input)
	if err := quantizeMatrix(x, a.Quantizer, a.Output); err != nil {
		return err
	}
	return a.DBias.SetFloat64s(x.sums())
}

// sums returns the sum over the rows of each column.
func (m matrix) sums() []float64 {
	sums := make([]float64, m.cols)
	for r := range m.rows {
		for c := range m.cols {
			sums[c] += m.at(r, c)
		}
	}
	return sums
}

// multiTensorQuantize implements quant.MultiTensorQuantize.
func multiTensorQuantize(a quant.MultiTensorQuantizeArgs) error {
	for i, t := range a.TensorList {
		if err := quantizeMatrix(matrixOf(t), a.QuantizerList[i], a.OutputList[i]); err != nil {
			return err
		}
	}
	return nil
}

// splitQuantize implements quant.SplitQuantize.
func splitQuantize(a quant.SplitQuantizeArgs) error {
	_, err := quantizeSections(a.Tensor, a.SplitSections, a.OutputList, func(i int) quant.Quantizer { return a.QuantizerList[i] })
	return err
}

// groupQuantize implements quant.GroupQuantize.
func groupQuantize(a quant.GroupQuantizeArgs) error {
	_, err := quantizeSections(a.Tensor, a.FirstDims, a.OutputList, func(int) quant.Quantizer { return a.Quantizer })
	return err
}

// bgradGroupQuantize implements quant.BgradGroupQuantize.
func bgradGroupQuantize(a quant.BgradGroupQuantizeArgs) error {
	sums, err := quantizeSections(a.Tensor, a.FirstDims, a.OutputList, func(int) quant.Quantizer { return a.Quantizer })
	if err != nil {
		return err
	}
	return a.DBias.SetFloat64s(sums)
}

// quantizeSections returns the sums over the rows of each section.
func quantizeSections(t *tensor.Tensor, lengths []int, out []quant.Quantized, quantizer func(i int) quant.Quantizer) ([]float64, error) {
	x := matrixOf(t)
	perFirst := t.Shape()[1:].Rows()
	var sums []float64
	begin := 0 // in rows
	for i, n := range lengths {
		rows := n * perFirst
		section := matrix{rows, x.cols, x.v[begin*x.cols : (begin+rows)*x.cols]}
		q := quantizer(i)
		q.Offset += uint64((begin*x.cols + 3) / 4)
		if err := quantizeMatrix(section, q, out[i]); err != nil {
			return nil, err
		}
		sums = append(sums, section.sums()...)
		begin += rows
	}
	return sums, nil
}

// castToFP8 implements quant.CastToFP8.
func castToFP8(a quant.CastToFP8Args) error {
	meta, k := a.FP8MetaTensor, a.FP8Tensor
	x := a.Input.Float64s()
	scale := meta.Scale.At(k)
	if err := castDelayed(a.Output, x, scale); err != nil {
		return err
	}
	meta.ScaleInv.Set(1/scale, k)
	meta.AmaxHistory.Set(max(meta.AmaxHistory.At(0, k), amaxOf(x)), 0, k)
	return nil
}
