package fp8

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// Rounder rounds matrices of one shape to fp8 and back.
type Rounder struct {
	Quantize   *opmanager.Bound[quant.QuantizeArgs]
	Dequantize *opmanager.Bound[quant.DequantizeArgs]
	quantizer  quant.Quantizer
	byRows     quant.Quantized
	byColumns  quant.Quantized // without data if its values are those by rows
	scale      *Scale          // nil unless scaling is delayed
}

// NewRounder returns a rounder for an operand of a shape, in memory that allocate returns. The
// scale is the one of the operand, nil unless scaling is delayed.
func (c Params) NewRounder(m *opmanager.Manager, of Operand, scale *Scale, allocate func(d tensor.DType, shape ...int) *tensor.Tensor, rows, cols int) *Rounder {
	r := &Rounder{
		Quantize: opmanager.MustBind(m, quant.Quantize), Dequantize: opmanager.MustBind(m, quant.Dequantize), quantizer: c.quantizer(of), scale: scale,
	}
	data, b := allocate(c.DType(of), rows, cols), r.quantizer.Scaling.BlockLen()
	r.byRows.Data = data
	if b == 0 {
		r.byRows.ScaleInv = allocate(tensor.F32, 1)
		if scale == nil {
			r.byRows.Scale, r.byRows.Amax = allocate(tensor.F32, 1), allocate(tensor.F32, 1)
		}
		return r
	}
	across := func(n int) int { return (n + b - 1) / b }
	switch {
	case r.quantizer.Block2D:
		r.byRows.ScaleInv = allocate(tensor.F32, across(rows), across(cols))
	case r.quantizer.Scaling == quant.MXFP8Scaling:
		r.byRows.ScaleInv = allocate(tensor.U8, rows, across(cols))
		r.byColumns = quant.Quantized{ColumnwiseData: data, ColumnwiseScaleInv: allocate(tensor.U8, across(rows), cols)}
	default:
		r.byRows.ScaleInv = allocate(tensor.F32, rows, across(cols))
		r.byColumns.ColumnwiseScaleInv = allocate(tensor.F32, cols, across(rows))
		if data != nil {
			r.byColumns.ColumnwiseData = memory.Must(data.Reshape(cols, rows))
		}
	}
	return r
}

// Args returns the arguments that write x [rows, cols], rounded to fp8, to y: for a product along
// its rows, or along its columns. They are for one call of each op.
func (r *Rounder) Args(x, y *tensor.Tensor, alongColumns bool) (quant.QuantizeArgs, quant.DequantizeArgs) {
	z := r.byRows
	if alongColumns && r.Sided() {
		z = r.byColumns
	}
	if r.scale != nil {
		z.Scale, z.Amax = r.scale.value, r.scale.amax()
	}
	q := quant.QuantizeArgs{Tensor: x, Quantizer: r.quantizer, Output: z}
	z.Scale, z.Amax = nil, nil
	return q, quant.DequantizeArgs{Input: z, Scaling: r.quantizer.Scaling, Block2D: r.quantizer.Block2D, Output: y}
}

// Sided reports whether products along rows and along columns have other values.
func (r *Rounder) Sided() bool { return r.byColumns.ColumnwiseScaleInv != nil }
