package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// quantize checks the arguments of Quantize except for aliasing.
func (c *check) quantize(a QuantizeArgs) {
	c.quantizing(a.Quantizer)
	c.quantizeOrNot("tensor", a.Tensor, a.Quantizer, a.Output)
	if a.Noop != nil {
		c.scalar("noop", a.Noop)
	}
}

// quantizeOrNot checks an input with its quantiser and outputs.
func (c *check) quantizeOrNot(name string, x *tensor.Tensor, q Quantizer, out Quantized) {
	if !c.compute(name, x) || !c.minRank(name, x, 1) {
		return
	}
	c.quantizer(q)
	c.quantized("output", out, q, x.Shape().Rows(), x.Shape().Cols(), true)
}

// quantizing requires a quantiser with a scaling.
func (c *check) quantizing(q Quantizer) {
	if c.err == nil && q.Scaling == NoScaling {
		c.fail("quantizer.scaling", "delayed, current, block, mxfp8 or nvfp4", "%v", q.Scaling)
	}
	c.quantizer(q)
}

func (c *check) quantizer(q Quantizer) {
	s := q.Scaling
	scaled := s == CurrentScaling || s == BlockScaling
	switch {
	case c.err != nil:
	case s < NoScaling || s > NVFP4Scaling:
		c.fail("quantizer.scaling", "a scaling of this package", "%v", s)
	case q.ForcePow2Scales && !scaled:
		c.fail("quantizer.force_pow_2_scales", "current or block scaling with it", "%v scaling", s)
	case q.AmaxEpsilon != 0 && !scaled:
		c.fail("quantizer.amax_epsilon", "current or block scaling with it", "%v scaling", s)
	case q.Stochastic && s != NVFP4Scaling:
		c.fail("quantizer.stochastic", "nvfp4 scaling with it", "%v scaling", s)
	default:
		c.notNegative("quantizer.amax_epsilon", q.AmaxEpsilon)
	}
}

// quantized checks a quantised tensor of a matrix; written when it is an output.
func (c *check) quantized(name string, z Quantized, q Quantizer, rows, cols int, written bool) {
	s := q.Scaling
	if c.err != nil {
		return
	}
	if s < NoScaling || s > NVFP4Scaling {
		c.fail("scaling", "a scaling of this package", "%v", s)
		return
	}
	blocks := s == BlockScaling || s == MXFP8Scaling || s == NVFP4Scaling
	if q.Block2D && s != BlockScaling && s != NVFP4Scaling {
		c.fail("block_2d", "block or nvfp4 scaling with it", "%v scaling", s)
	}
	perTensor := s == DelayedScaling || s == CurrentScaling
	if s != NoScaling && z.Data == nil && z.ColumnwiseData == nil {
		c.fail(name, "data by rows, by columns, or both", "neither")
	}
	c.absent(name, ".data", z.Data, s == NoScaling, s)
	c.absent(name, ".columnwise_data", z.ColumnwiseData, s == NoScaling, s)
	c.absent(name, ".scale_inv", z.ScaleInv, !perTensor && z.Data == nil, s)
	c.absent(name, ".columnwise_scale_inv", z.ColumnwiseScaleInv, !blocks || z.ColumnwiseData == nil, s)
	if written {
		c.absent(name, ".scale", z.Scale, !perTensor, s)
		c.absent(name, ".amax", z.Amax, !perTensor && s != NVFP4Scaling, s)
	}
	if c.err != nil || s == NoScaling {
		return
	}

	if perTensor {
		c.number(name, ".scale_inv", z.ScaleInv)
		if written {
			c.number(name, ".scale", z.Scale)
		}
	}
	if s == NVFP4Scaling || perTensor && written {
		c.number(name, ".amax", z.Amax)
	}
	if z.Data != nil {
		c.side(name, ".data", ".scale_inv", z.Data, z.ScaleInv, q, rows, cols, false)
	}
	if z.ColumnwiseData != nil {
		c.side(name, ".columnwise_data", ".columnwise_scale_inv", z.ColumnwiseData, z.ColumnwiseScaleInv, q, cols, rows, s == MXFP8Scaling)
	}
	if c.err == nil && z.Data != nil && z.ColumnwiseData != nil && z.Data.DType() != z.ColumnwiseData.DType() {
		c.fail(name+".columnwise_data", "the dtype of "+name+".data, "+z.Data.DType().String(), "%v", z.ColumnwiseData)
	}
}

// side checks the data by rows or by columns, and its scales. For data by columns, rows and cols
// are those of the transposed matrix. With transposed, data and scales are stored as the transpose
// of that.
func (c *check) side(name, data, scales string, x, inv *tensor.Tensor, q Quantizer, rows, cols int, transposed bool) {
	width, kind := cols, ofFP8
	if q.Scaling == NVFP4Scaling {
		kind, width = ofU8, cols/2
		if cols%2 != 0 && c.err == nil {
			c.fail(name+data, "an even length of the rows that are quantised", "%d", cols)
		}
	}
	c.matrix(name, data, x, kind, rows, width, transposed)
	b := q.Scaling.BlockLen()
	if b == 0 {
		return
	}
	kind = ofF32
	switch q.Scaling {
	case MXFP8Scaling:
		kind = ofU8
	case NVFP4Scaling:
		kind = ofE4M3
	}
	if q.Block2D {
		rows = ceilDiv(rows, b)
	}
	c.matrix(name, scales, inv, kind, rows, ceilDiv(cols, b), transposed)
}

// matrix requires an operand of a kind whose matrix has these axes.
func (c *check) matrix(name, part string, t *tensor.Tensor, k listKind, rows, cols int, transposed bool) {
	if c.err != nil {
		return
	}
	if transposed {
		rows, cols = cols, rows
	}
	switch {
	case t == nil:
		c.given(name+part, t)
	case !k.holds(t.DType()):
		c.kind(name+part, t, k)
	case len(t.Shape()) == 0 || t.Shape().Cols() != cols || t.Shape().Rows() != rows:
		c.fail(name+part, fmt.Sprintf("%d rows of %d", rows, cols), "%v", t)
	}
}

func (c *check) number(name, part string, t *tensor.Tensor) {
	if c.err == nil && (t == nil || t.DType() != tensor.F32 || t.NumElements() != 1) {
		c.scalar(name+part, t)
	}
}

// absent requires an operand to be nil that a scaling does not use.
func (c *check) absent(name, part string, t *tensor.Tensor, unused bool, s Scaling) {
	if c.err == nil && unused && t != nil {
		c.fail(name+part, "nothing with this "+s.String()+" scaling and without its data", "%v", t)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

const quantizedFields = 6

// field returns an operand of a quantised tensor and whether Quantize writes it.
func (z Quantized) field(i int, s Scaling) (*tensor.Tensor, bool) {
	switch i {
	case 0:
		return z.Data, true
	case 1:
		return z.ScaleInv, true
	case 2:
		return z.ColumnwiseData, true
	case 3:
		return z.ColumnwiseScaleInv, true
	case 4:
		return z.Scale, s != DelayedScaling
	default:
		return z.Amax, true
	}
}

func fieldName(i int) string {
	return [...]string{".data", ".scale_inv", ".columnwise_data", ".columnwise_scale_inv", ".scale", ".amax"}[i]
}

// quantizedNames returns the names of the operands of one quantised tensor, or of a list of them.
func quantizedNames(name string, list bool) func(z, field int) string {
	return func(z, field int) string {
		if list {
			return indexed(name, z) + fieldName(field)
		}
		return name + fieldName(field)
	}
}

// quantizedApart requires that the operands which Quantize writes in n tensors share no memory with
// any other operand.
func (c *check) quantizedApart(n int, at func(i int) (Quantized, Scaling), name func(z, field int) string, singles ...single) {
	if c.err != nil {
		return
	}
	inFields := n * quantizedFields
	c.allApart(inFields+len(singles), func(i int) (*tensor.Tensor, bool) {
		if i >= inFields {
			return singles[i-inFields].t, singles[i-inFields].written
		}
		z, s := at(i / quantizedFields)
		return z.field(i%quantizedFields, s)
	}, func(i int) string {
		if i >= inFields {
			return singles[i-inFields].name
		}
		return name(i/quantizedFields, i%quantizedFields)
	})
}

// quantized adds the operands that Quantize has besides its input. A call that may do nothing
// leaves them unchanged, so they count as updated.
func (o operands) quantized(name string, z Quantized, s Scaling, mayDoNothing bool) operands {
	for i := range quantizedFields {
		t, written := z.field(i, s)
		access := opregistry.AccessWrite
		switch {
		case !written:
			access = opregistry.AccessRead
		case mayDoNothing || s == DelayedScaling && t == z.Amax:
			access = opregistry.AccessUpdate
		}
		o = o.add(name+fieldName(i), t, access)
	}
	return o
}
