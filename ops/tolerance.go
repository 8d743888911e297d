package ops

import "github.com/primus-fl/primus/tensor"

// bound is how far the results of an op may differ from the oracle's. Impls compute in f32 or
// better and round once, so the bound for f64 storage is that for f32; for narrow storage it adds
// the one unit by which two roundings of nearly equal values can differ.
type bound struct {
	op     string
	wide   tensor.Tolerance // f32, f64
	narrow tensor.Tolerance // bf16, f16, fp8
	reason string
}

// arithmetic is the bound of an op whose f32 arithmetic has an error of at most abs + rel·|want|.
func arithmetic(op string, abs, rel float64, reason string) bound {
	return bound{
		op:     op,
		wide:   tensor.Tolerance{Abs: abs, Rel: rel},
		narrow: tensor.Tolerance{Abs: 2 * abs, Rel: 2 * rel, ULP: 1},
		reason: reason,
	}
}

// bounds returns the table of tolerances. They hold for the operands of the conformance cases:
// values of magnitude 1 unless a case says otherwise.
func bounds() []bound {
	quotient := tensor.Tolerance{Rel: 0x1p-22, ULP: 2} // with subnormals
	return []bound{
		{op: "quantize", wide: quotient, narrow: tensor.Tolerance{ULP: 1}, reason: "scales are quotients of f32; x·scale in f32 may round to a tie of the narrow format"},
		{op: "multi_tensor_quantize", wide: quotient, narrow: tensor.Tolerance{ULP: 1}, reason: "scales are quotients of f32; x·scale in f32 may round to a tie of the narrow format"},
		{op: "split_quantize", wide: quotient, narrow: tensor.Tolerance{ULP: 1}, reason: "scales are quotients of f32; x·scale in f32 may round to a tie of the narrow format"},
		{op: "group_quantize", wide: quotient, narrow: tensor.Tolerance{ULP: 1}, reason: "scales are quotients of f32; x·scale in f32 may round to a tie of the narrow format"},
		{op: "dequantize", wide: tensor.Tolerance{Rel: 0x1p-21}, narrow: tensor.Tolerance{ULP: 1}, reason: "up to three products"},
		arithmetic("bgrad_quantize", 0, 1e-5, "as quantize, and sums of up to 36 positive numbers"),
		arithmetic("bgrad_group_quantize", 0, 1e-5, "as quantize, and sums of up to 36 positive numbers"),
	}
}

// Tolerance returns how far a written operand of dtype d of an op may differ from the result of
// another correct implementation, for operands of magnitude 1, and why. It is zero, which means
// equality, for integers and for an op that is not in the catalogue; the reason of the latter is
// "".
func Tolerance(op string, d tensor.DType) (tol tensor.Tolerance, reason string) {
	for _, b := range bounds() {
		switch {
		case b.op != op:
			continue
		case !d.IsFloat():
			return tensor.Tolerance{}, b.reason
		case d == tensor.F32 || d == tensor.F64:
			return b.wide, b.reason
		default:
			return b.narrow, b.reason
		}
	}
	for _, o := range All() {
		if o.Name() == op {
			return o.Tolerance().Of(d), o.Tolerance().Reason
		}
	}
	return tensor.Tolerance{}, ""
}
