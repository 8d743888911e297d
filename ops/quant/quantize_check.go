package quant

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// quantize checks the arguments of Quantize except for aliasing.
func quantize(c *check.Call, a QuantizeArgs) {
	quantizing(c, a.Quantizer)
	quantizeOrNot(c, "tensor", a.Tensor, a.Quantizer, a.Output)
	if a.Noop != nil {
		c.Scalar("noop", a.Noop)
	}
}

// quantizeOrNot checks an input with its quantiser and outputs.
func quantizeOrNot(c *check.Call, name string, x *tensor.Tensor, q Quantizer, out Quantized) {
	if !c.Compute(name, x) || !c.MinRank(name, x, 1) {
		return
	}
	quantizer(c, q)
	checkQuantized(c, "output", out, q, x.Shape().Rows(), x.Shape().Cols(), true)
}

// quantizing requires a quantiser with a scaling.
func quantizing(c *check.Call, q Quantizer) {
	if c.Err == nil && q.Scaling == NoScaling {
		c.Fail("quantizer.scaling", "delayed, current, block, mxfp8 or nvfp4", "%v", q.Scaling)
	}
	quantizer(c, q)
}

func quantizer(c *check.Call, q Quantizer) {
	s := q.Scaling
	scaled := s == CurrentScaling || s == BlockScaling
	switch {
	case c.Err != nil:
	case s < NoScaling || s > NVFP4Scaling:
		c.Fail("quantizer.scaling", "a scaling of this package", "%v", s)
	case q.ForcePow2Scales && !scaled:
		c.Fail("quantizer.force_pow_2_scales", "current or block scaling with it", "%v scaling", s)
	case q.AmaxEpsilon != 0 && !scaled:
		c.Fail("quantizer.amax_epsilon", "current or block scaling with it", "%v scaling", s)
	case q.Stochastic && s != NVFP4Scaling:
		c.Fail("quantizer.stochastic", "nvfp4 scaling with it", "%v scaling", s)
	default:
		notNegative(c, "quantizer.amax_epsilon", q.AmaxEpsilon)
	}
}

// checkQuantized checks a quantised tensor of a matrix; written when it is an output.
func checkQuantized(c *check.Call, name string, z Quantized, q Quantizer, rows, cols int, written bool) {
	s := q.Scaling
	if c.Err != nil {
		return
	}
	if s < NoScaling || s > NVFP4Scaling {
		c.Fail("scaling", "a scaling of this package", "%v", s)
		return
	}
	blocks := s == BlockScaling || s == MXFP8Scaling || s == NVFP4Scaling
	if q.Block2D && s != BlockScaling && s != NVFP4Scaling {
		c.Fail("block_2d", "block or nvfp4 scaling with it", "%v scaling", s)
	}
	perTensor := s == DelayedScaling || s == CurrentScaling
	if s != NoScaling && z.Data == nil && z.ColumnwiseData == nil {
		c.Fail(name, "data by rows, by columns, or both", "neither")
	}
	absent(c, name, ".data", z.Data, s == NoScaling, s)
	absent(c, name, ".columnwise_data", z.ColumnwiseData, s == NoScaling, s)
	absent(c, name, ".scale_inv", z.ScaleInv, !perTensor && z.Data == nil, s)
	absent(c, name, ".columnwise_scale_inv", z.ColumnwiseScaleInv, !blocks || z.ColumnwiseData == nil, s)
	if written {
		absent(c, name, ".scale", z.Scale, !perTensor, s)
		absent(c, name, ".amax", z.Amax, !perTensor && s != NVFP4Scaling, s)
	}
	if c.Err != nil || s == NoScaling {
		return
	}

	if perTensor {
		number(c, name, ".scale_inv", z.ScaleInv)
		if written {
			number(c, name, ".scale", z.Scale)
		}
	}
	if s == NVFP4Scaling || perTensor && written {
		number(c, name, ".amax", z.Amax)
	}
	if z.Data != nil {
		side(c, name, ".data", ".scale_inv", z.Data, z.ScaleInv, q, rows, cols, false)
	}
	if z.ColumnwiseData != nil {
		side(c, name, ".columnwise_data", ".columnwise_scale_inv", z.ColumnwiseData, z.ColumnwiseScaleInv, q, cols, rows, s == MXFP8Scaling)
	}
	if c.Err == nil && z.Data != nil && z.ColumnwiseData != nil && z.Data.DType() != z.ColumnwiseData.DType() {
		c.Fail(name+".columnwise_data", "the dtype of "+name+".data, "+z.Data.DType().String(), "%v", z.ColumnwiseData)
	}
}

// side checks the data by rows or by columns, and its scales. For data by columns, rows and cols
// are those of the transposed matrix. With transposed, data and scales are stored as the transpose
// of that.
func side(c *check.Call, name, data, scales string, x, inv *tensor.Tensor, q Quantizer, rows, cols int, transposed bool) {
	width, kind := cols, check.OfFP8
	if q.Scaling == NVFP4Scaling {
		kind, width = check.OfU8, cols/2
		if cols%2 != 0 && c.Err == nil {
			c.Fail(name+data, "an even length of the rows that are quantised", "%d", cols)
		}
	}
	matrix(c, name, data, x, kind, rows, width, transposed)
	b := q.Scaling.BlockLen()
	if b == 0 {
		return
	}
	kind = check.OfF32
	switch q.Scaling {
	case MXFP8Scaling:
		kind = check.OfU8
	case NVFP4Scaling:
		kind = check.OfE4M3
	}
	if q.Block2D {
		rows = check.CeilDiv(rows, b)
	}
	matrix(c, name, scales, inv, kind, rows, check.CeilDiv(cols, b), transposed)
}

// matrix requires an operand of a kind whose matrix has these axes.
func matrix(c *check.Call, name, part string, t *tensor.Tensor, k check.DTypes, rows, cols int, transposed bool) {
	if c.Err != nil {
		return
	}
	if transposed {
		rows, cols = cols, rows
	}
	switch {
	case t == nil:
		c.Given(name+part, t)
	case !k.Holds(t.DType()):
		c.Kind(name+part, t, k)
	case len(t.Shape()) == 0 || t.Shape().Cols() != cols || t.Shape().Rows() != rows:
		c.Fail(name+part, fmt.Sprintf("%d rows of %d", rows, cols), "%v", t)
	}
}

func number(c *check.Call, name, part string, t *tensor.Tensor) {
	if c.Err == nil && (t == nil || t.DType() != tensor.F32 || t.NumElements() != 1) {
		c.Scalar(name+part, t)
	}
}

// absent requires an operand to be nil that a scaling does not use.
func absent(c *check.Call, name, part string, t *tensor.Tensor, unused bool, s Scaling) {
	if c.Err == nil && unused && t != nil {
		c.Fail(name+part, "nothing with this "+s.String()+" scaling and without its data", "%v", t)
	}
}

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
			return check.Indexed(name, z) + fieldName(field)
		}
		return name + fieldName(field)
	}
}

// quantizedApart requires that the operands which Quantize writes in n tensors share no memory with
// any other operand.
func quantizedApart(c *check.Call, n int, at func(i int) (Quantized, Scaling), name func(z, field int) string, singles ...check.Single) {
	if c.Err != nil {
		return
	}
	inFields := n * quantizedFields
	c.AllApart(inFields+len(singles), func(i int) (*tensor.Tensor, bool) {
		if i >= inFields {
			return singles[i-inFields].Tensor, singles[i-inFields].Written
		}
		z, s := at(i / quantizedFields)
		return z.field(i%quantizedFields, s)
	}, func(i int) string {
		if i >= inFields {
			return singles[i-inFields].Name
		}
		return name(i/quantizedFields, i%quantizedFields)
	})
}

// quantized adds the operands that Quantize has besides its input. A call that may do nothing
// leaves them unchanged, so they count as updated.
func quantized(o check.Operands, name string, z Quantized, s Scaling, mayDoNothing bool) check.Operands {
	for i := range quantizedFields {
		t, written := z.field(i, s)
		access := opregistry.AccessWrite
		switch {
		case !written:
			access = opregistry.AccessRead
		case mayDoNothing || s == DelayedScaling && t == z.Amax:
			access = opregistry.AccessUpdate
		}
		o = o.Add(name+fieldName(i), t, access)
	}
	return o
}
