package opencl

import (
	_ "embed"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

//go:embed quant.cl
var quantSource string

var quantProgram = newProgram("quant", quantSource, []string{"X"}, []string{"E5M2", "E8M0"})

const (
	e5m2 macroFlags = 1 << iota
	e8m0
)

// quantImpls returns the impls of the family.
func quantImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(quant.Quantize, quantize, Storage),
		openclImpl(quant.Dequantize, dequantize, nil),
		openclImpl(quant.FusedAmaxAndScaleUpdateAfterReduction, update, []tensor.DType{tensor.F32}),
	}
}

// format returns the flags of a scaling and a dtype of fp8.
func format(c *kernelCall, s quant.Scaling, data *tensor.Tensor) (flags macroFlags) {
	switch s {
	case quant.MXFP8Scaling:
		flags = e8m0
	case quant.NVFP4Scaling:
		c.decline("%v scaling, this impl serves fp8", s)
	}
	if data.DType() == tensor.F8E5M2 {
		flags |= e5m2
	}
	return flags
}

// strided adds matrices that STRIDED declares.
func strided(l *kernelLaunch, operands ...matrix) *kernelLaunch {
	for _, m := range operands {
		l.vec(m.Tensor).u64(uint64(m.Row), uint64(m.Col))
	}
	return l
}

// side is the data of a quantised matrix by rows or by columns. By columns, all matrices are
// transposed.
type side struct {
	x, data, inverse matrix
	height, width    int // of a block
}

// sideOf views the data by rows, or by columns, of a quantised matrix; x is the matrix itself.
func sideOf(c *kernelCall, s quant.Scaling, square bool, name string, x matrix, z quant.Quantized, byColumns bool) side {
	one := side{x: x, height: 1, width: s.BlockLen()}
	data, inverse := z.Data, z.ScaleInv
	if byColumns {
		one.x, data = x.transposed(), z.ColumnwiseData
		if one.width > 0 {
			inverse = z.ColumnwiseScaleInv
		}
	}
	one.data, one.inverse = c.anyMatrix(name+".data", data), c.anyMatrix(name+".scale_inv", inverse)
	switch {
	case byColumns && s == quant.MXFP8Scaling:
		one.data, one.inverse = one.data.transposed(), one.inverse.transposed()
	case one.width == 0:
		one.height, one.width = math.MaxInt32, math.MaxInt32
	case square:
		one.height = one.width
	}
	return one
}

// quantize implements quant.Quantize for fp8, without a flag that turns calls off.
func quantize(e *opregistry.Exec, a quant.QuantizeArgs) error {
	c := begin(e)
	if a.Noop != nil {
		c.decline("noop, this impl always rounds")
	}
	x := c.matrix("tensor", a.Tensor)
	var sides []side
	var flags macroFlags
	for byColumns, data := range [...]*tensor.Tensor{a.Output.Data, a.Output.ColumnwiseData} {
		if data != nil {
			flags = format(&c, a.Quantizer.Scaling, data)
			sides = append(sides, sideOf(&c, a.Quantizer.Scaling, a.Quantizer.Block2D, "output", x, a.Output, byColumns == 1))
		}
	}
	scale := a.Quantizer.Scaling.BlockLen() == 0
	if scale {
		c.numbers("output.amax", a.Output.Amax, tensor.F32)
		c.numbers("output.scale", a.Output.Scale, tensor.F32)
	}
	if c.Err != nil || c.Device == nil {
		return c.Err
	}
	types := typeList{a.Tensor.DType()}
	if scale {
		if err := wholeScale(&c, a, x, types, flags); err != nil {
			return err
		}
	}
	for _, s := range sides {
		var err error
		if scale {
			err = strided(c.kernel(quantProgram, "whole", types, flags), s.x, s.data).vec(a.Output.Scale).groupRows(s.x.Rows, s.x.Cols).Run()
		} else {
			err = quantBlocks(&c, a.Quantizer, s, types, flags)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeScale queues the search for the largest magnitude and the scale of a tensor.
func wholeScale(c *kernelCall, a quant.QuantizeArgs, x matrix, types typeList, flags macroFlags) error {
	parts, err := c.sums(x.Rows, x.Cols)
	if err != nil {
		return err
	}
	defer parts.Release()
	l := strided(c.kernel(quantProgram, "amax_parts", types, flags), x).vec(parts.At(0)).u32(x.Rows, x.Cols, parts.Per)
	if err := l.runGroups(parts.Parts, 1); err != nil {
		return err
	}
	q := a.Quantizer
	l = c.kernel(quantProgram, "whole_scale", types, flags).vec(parts.At(0), a.Output.Amax, a.Output.Scale, a.Output.ScaleInv)
	return l.u32(parts.Parts).f32(q.AmaxEpsilon).bool(q.ForcePow2Scales, q.Scaling == quant.DelayedScaling).runGroups(1, 1)
}

// quantBlocks queues the rounding of a side in blocks.
func quantBlocks(c *kernelCall, q quant.Quantizer, s side, types typeList, flags macroFlags) error {
	n := ceilDiv(s.x.Rows, s.height) * ceilDiv(s.x.Cols, s.width)
	l := strided(c.kernel(quantProgram, "blocks", types, flags), s.x, s.data, s.inverse)
	l.u32(s.x.Rows, s.x.Cols, s.height, s.width).f32(q.AmaxEpsilon).bool(q.ForcePow2Scales).u64(uint64(n))
	return l.items(n, s.height*s.width).Run()
}

// dequantize implements quant.Dequantize for fp8.
func dequantize(e *opregistry.Exec, a quant.DequantizeArgs) error {
	c := begin(e)
	byColumns := a.Input.Data == nil
	data := a.Input.Data
	if byColumns {
		data = a.Input.ColumnwiseData
	}
	flags := format(&c, a.Scaling, data)
	s := sideOf(&c, a.Scaling, a.Block2D, "input", c.matrix("output", a.Output), a.Input, byColumns)
	if c.Err != nil || c.Device == nil {
		return c.Err
	}
	l := strided(c.kernel(quantProgram, "dequantize", typeList{a.Output.DType()}, flags), s.data, s.inverse, s.x)
	return l.u32(s.height, s.width).groupRows(s.x.Rows, s.x.Cols).Run()
}

// update implements quant.FusedAmaxAndScaleUpdateAfterReduction.
func update(e *opregistry.Exec, a quant.FusedAmaxAndScaleUpdateArgs) error {
	c := begin(e)
	c.numbers("amax_reduction_buffer", a.AmaxReductionBuffer, tensor.F32)
	var histories []matrix
	for i, h := range a.AmaxHistories {
		histories = append(histories, c.matrix("amax_histories", h))
		c.numbers("scales", a.Scales[i], tensor.F32)
	}
	if c.Err != nil || c.Device == nil {
		return c.Err
	}
	largest := 448.0
	if a.FP8DType == tensor.F8E5M2 {
		largest = 57344
	}
	first := 0
	for i, h := range histories {
		last, err := a.AmaxReductionBuffer.Slice(0, first, first+h.Cols)
		if err != nil {
			return err
		}
		first += h.Cols
		l := strided(c.kernel(quantProgram, "roll", typeList{}, 0).vec(last), h).vec(a.Scales[i]).u32(h.Rows)
		l.f32(float32(largest * math.Exp2(-float64(a.Margin)))).bool(a.AmaxComputeAlgo == quant.AmaxMostRecent).u64(uint64(h.Cols))
		if err := l.items(h.Cols, h.Rows).Run(); err != nil {
			return err
		}
	}
	return nil
}
