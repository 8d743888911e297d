package quant

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// quantized checks what a tensor is quantised to.
func quantized(c *opregistry.Check, x *tensor.Tensor, q Quantizer, out Quantized) {
	checkQuantized(c, "output", out, q, x.Shape().Rows(), x.Shape().Cols(), true)
}

// outputAccess returns what Quantize does to an operand of its output, named as in output.amax.
func outputAccess(q Quantizer, operand string) opregistry.Access {
	switch {
	case q.Scaling == DelayedScaling && strings.HasSuffix(operand, ".scale"):
		return opregistry.AccessRead
	case q.Scaling == DelayedScaling && strings.HasSuffix(operand, ".amax"):
		return opregistry.AccessUpdate
	}
	return opregistry.AccessWrite
}

// quantizing requires a quantiser with a scaling.
func quantizing(c *opregistry.Check, q Quantizer) {
	if q.Scaling == NoScaling {
		c.Fail("quantizer.scaling", "delayed, current, block, mxfp8 or nvfp4", "%v", q.Scaling)
	}
	quantizer(c, q)
}

func quantizer(c *opregistry.Check, q Quantizer) {
	s := q.Scaling
	scaled := s == CurrentScaling || s == BlockScaling
	switch {
	case s < NoScaling || s > NVFP4Scaling:
		c.Fail("quantizer.scaling", "a scaling of this package", "%v", s)
	case q.ForcePow2Scales && !scaled:
		c.Fail("quantizer.force_pow_2_scales", "current or block scaling with it", "%v scaling", s)
	case q.AmaxEpsilon != 0 && !scaled:
		c.Fail("quantizer.amax_epsilon", "current or block scaling with it", "%v scaling", s)
	case q.Block2D && s != BlockScaling && s != NVFP4Scaling:
		c.Fail("quantizer.block_2d", "block or nvfp4 scaling with it", "%v scaling", s)
	case q.Stochastic && s != NVFP4Scaling:
		c.Fail("quantizer.stochastic", "nvfp4 scaling with it", "%v scaling", s)
	case !(q.AmaxEpsilon >= 0): // in lists, which tags do not bound
		c.Fail("quantizer.amax_epsilon", "a number >= 0", "%v", q.AmaxEpsilon)
	}
}

// checkQuantized checks a quantised tensor of a matrix; written when it is an output.
func checkQuantized(c *opregistry.Check, name string, z Quantized, q Quantizer, rows, cols int, written bool) {
	s := q.Scaling
	if !c.OK() {
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
	if !c.OK() || s == NoScaling {
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
	if c.OK() && z.Data != nil && z.ColumnwiseData != nil && z.Data.DType() != z.ColumnwiseData.DType() {
		c.Fail(name+".columnwise_data", "the dtype of "+name+".data, "+z.Data.DType().String(), "%v", z.ColumnwiseData)
	}
}

// side checks the data by rows or by columns, and its scales. For data by columns, rows and cols
// are those of the transposed matrix. With transposed, data and scales are stored as the transpose
// of that.
func side(c *opregistry.Check, name, data, scales string, x, inv *tensor.Tensor, q Quantizer, rows, cols int, transposed bool) {
	width, kind := cols, opregistry.FP8
	if q.Scaling == NVFP4Scaling {
		kind, width = opregistry.Only(tensor.U8), cols/2
		if cols%2 != 0 && c.OK() {
			c.Fail(name+data, "an even length of the rows that are quantised", "%d", cols)
		}
	}
	matrix(c, name, data, x, kind, rows, width, transposed)
	b := q.Scaling.BlockLen()
	if b == 0 {
		return
	}
	kind = opregistry.Only(tensor.F32)
	switch q.Scaling {
	case MXFP8Scaling:
		kind = opregistry.Only(tensor.U8)
	case NVFP4Scaling:
		kind = opregistry.Only(tensor.F8E4M3)
	}
	if q.Block2D {
		rows = check.CeilDiv(rows, b)
	}
	matrix(c, name, scales, inv, kind, rows, check.CeilDiv(cols, b), transposed)
}

// matrix requires an operand of a kind whose matrix has these axes.
func matrix(c *opregistry.Check, name, part string, t *tensor.Tensor, k opregistry.DTypes, rows, cols int, transposed bool) {
	if !c.OK() {
		return
	}
	if transposed {
		rows, cols = cols, rows
	}
	switch {
	case t == nil:
		c.Given(name+part, t)
	case !k.Has(t.DType()):
		c.DType(name+part, t, k)
	case len(t.Shape()) == 0 || t.Shape().Cols() != cols || t.Shape().Rows() != rows:
		c.Fail(name+part, fmt.Sprintf("%d rows of %d", rows, cols), "%v", t)
	}
}

// number requires one of the numbers of a tensor, whose form tags describe.
func number(c *opregistry.Check, name, part string, t *tensor.Tensor) {
	if c.OK() && (t == nil || t.DType() != tensor.F32 || t.NumElements() != 1) && c.DType(name+part, t, opregistry.Only(tensor.F32)) {
		c.Elements(name+part, t, 1, "one for each tensor")
	}
}

// absent requires an operand to be nil that a scaling does not use.
func absent(c *opregistry.Check, name, part string, t *tensor.Tensor, unused bool, s Scaling) {
	if c.OK() && unused && t != nil {
		c.Fail(name+part, "nothing with this "+s.String()+" scaling and without its data", "%v", t)
	}
}
