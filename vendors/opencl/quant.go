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

var quantProgram = NewProgram("quant", quantSource, []string{"X"}, []string{"E5M2", "E8M0"})

const (
	e5m2 Flags = 1 << iota
	e8m0
)

// quantImpls returns the impls of the family.
func quantImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(quant.Quantize, quantize, Storage),
		Impl(quant.Dequantize, dequantize, nil),
		Impl(quant.FusedAmaxAndScaleUpdateAfterReduction, update, []tensor.DType{tensor.F32}),
	}
}

// format returns the flags of a scaling and a dtype of fp8.
func format(c *Call, s quant.Scaling, data *tensor.Tensor) (flags Flags) {
	switch s {
	case quant.MXFP8Scaling:
		flags = e8m0
	case quant.NVFP4Scaling:
		c.Decline("%v scaling, this impl serves fp8", s)
	}
	if data.DType() == tensor.F8E5M2 {
		flags |= e5m2
	}
	return flags
}

// strided adds matrices that STRIDED declares.
func strided(l *Launch, operands ...Matrix) *Launch {
	for _, m := range operands {
		l.Vec(m.Tensor).U64(uint64(m.Row), uint64(m.Col))
	}
	return l
}

// side is the data of a quantised matrix by rows or by columns. By columns, all matrices are
// transposed.
type side struct {
	x, data, inverse Matrix
	height, width    int // of a block
}

// sideOf views the data by rows, or by columns, of a quantised matrix; x is the matrix itself.
func sideOf(c *Call, s quant.Scaling, square bool, name string, x Matrix, z quant.Quantized, byColumns bool) side {
	one := side{x: x, height: 1, width: s.BlockLen()}
	data, inverse := z.Data, z.ScaleInv
	if byColumns {
		one.x, data = x.Transposed(), z.ColumnwiseData
		if one.width > 0 {
			inverse = z.ColumnwiseScaleInv
		}
	}
	one.data, one.inverse = c.AnyMatrix(name+".data", data), c.AnyMatrix(name+".scale_inv", inverse)
	switch {
	case byColumns && s == quant.MXFP8Scaling:
		one.data, one.inverse = one.data.Transposed(), one.inverse.Transposed()
	case one.width == 0:
		one.height, one.width = math.MaxInt32, math.MaxInt32
	case square:
		one.height = one.width
	}
	return one
}

// quantize implements quant.Quantize for fp8, without a flag that turns calls off.
func quantize(e *opregistry.Exec, a quant.QuantizeArgs) error {
	c := Begin(e)
	if a.Noop != nil {
		c.Decline("noop, this impl always rounds")
	}
	x := c.Matrix("tensor", a.Tensor)
	var sides []side
	var flags Flags
	for byColumns, data := range [...]*tensor.Tensor{a.Output.Data, a.Output.ColumnwiseData} {
		if data != nil {
			flags = format(&c, a.Quantizer.Scaling, data)
			sides = append(sides, sideOf(&c, a.Quantizer.Scaling, a.Quantizer.Block2D, "output", x, a.Output, byColumns == 1))
		}
	}
	scale := a.Quantizer.Scaling.BlockLen() == 0
	if scale {
		c.Numbers("output.amax", a.Output.Amax, tensor.F32)
		c.Numbers("output.scale", a.Output.Scale, tensor.F32)
	}
	if c.Err != nil || c.Device == nil {
		return c.Err
	}
	types := Types{a.Tensor.DType()}
	if scale {
		if err := wholeScale(&c, a, x, types, flags); err != nil {
			return err
		}
	}
	for _, s := range sides {
		var err error
		if scale {
			err = strided(c.Kernel(quantProgram, "whole", types, flags), s.x, s.data).Vec(a.Output.Scale).Rows(s.x.Rows, s.x.Cols).Run()
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
func wholeScale(c *Call, a quant.QuantizeArgs, x Matrix, types Types, flags Flags) error {
	parts, err := c.Sums(x.Rows, x.Cols)
	if err != nil {
		return err
	}
	defer parts.Release()
	l := strided(c.Kernel(quantProgram, "amax_parts", types, flags), x).Vec(parts.At(0)).U32(x.Rows, x.Cols, parts.Per)
	if err := l.RunGroups(parts.Parts, 1); err != nil {
		return err
	}
	q := a.Quantizer
	l = c.Kernel(quantProgram, "whole_scale", types, flags).Vec(parts.At(0), a.Output.Amax, a.Output.Scale, a.Output.ScaleInv)
	return l.U32(parts.Parts).F32(q.AmaxEpsilon).Bool(q.ForcePow2Scales, q.Scaling == quant.DelayedScaling).RunGroups(1, 1)
}

// quantBlocks queues the rounding of a side in blocks.
func quantBlocks(c *Call, q quant.Quantizer, s side, types Types, flags Flags) error {
	n := CeilDiv(s.x.Rows, s.height) * CeilDiv(s.x.Cols, s.width)
	l := strided(c.Kernel(quantProgram, "blocks", types, flags), s.x, s.data, s.inverse)
	l.U32(s.x.Rows, s.x.Cols, s.height, s.width).F32(q.AmaxEpsilon).Bool(q.ForcePow2Scales).U64(uint64(n))
	return l.Items(n, s.height*s.width).Run()
}

// dequantize implements quant.Dequantize for fp8.
func dequantize(e *opregistry.Exec, a quant.DequantizeArgs) error {
	c := Begin(e)
	byColumns := a.Input.Data == nil
	data := a.Input.Data
	if byColumns {
		data = a.Input.ColumnwiseData
	}
	flags := format(&c, a.Scaling, data)
	s := sideOf(&c, a.Scaling, a.Block2D, "input", c.Matrix("output", a.Output), a.Input, byColumns)
	if c.Err != nil || c.Device == nil {
		return c.Err
	}
	l := strided(c.Kernel(quantProgram, "dequantize", Types{a.Output.DType()}, flags), s.data, s.inverse, s.x)
	return l.U32(s.height, s.width).Rows(s.x.Rows, s.x.Cols).Run()
}

// update implements quant.FusedAmaxAndScaleUpdateAfterReduction.
func update(e *opregistry.Exec, a quant.FusedAmaxAndScaleUpdateArgs) error {
	c := Begin(e)
	c.Numbers("amax_reduction_buffer", a.AmaxReductionBuffer, tensor.F32)
	var histories []Matrix
	for i, h := range a.AmaxHistories {
		histories = append(histories, c.Matrix("amax_histories", h))
		c.Numbers("scales", a.Scales[i], tensor.F32)
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
		l := strided(c.Kernel(quantProgram, "roll", Types{}, 0).Vec(last), h).Vec(a.Scales[i]).U32(h.Rows)
		l.F32(float32(largest * math.Exp2(-float64(a.Margin)))).Bool(a.AmaxComputeAlgo == quant.AmaxMostRecent).U64(uint64(h.Cols))
		if err := l.Items(h.Cols, h.Rows).Run(); err != nil {
			return err
		}
	}
	return nil
}
