package opregistry

import "github.com/primus-fl/primus/tensor"

// Tolerance is how far the results of an op may differ from those of another correct
// implementation, for operands of magnitude 1. Impls compute in f32 or better and round once, so
// the bound for f64 storage is that for f32; for narrow storage it adds the one unit by which two
// roundings of nearly equal values can differ.
type Tolerance struct {
	Wide   tensor.Tolerance // f32, f64
	Narrow tensor.Tolerance // bf16, f16, fp8
	Reason string
}

// Arithmetic is the Tolerance of an op whose f32 arithmetic has an error of at most
// abs + rel·|want|.
func Arithmetic(abs, rel float64, reason string) Tolerance {
	return Tolerance{
		Wide:   tensor.Tolerance{Abs: abs, Rel: rel},
		Narrow: tensor.Tolerance{Abs: 2 * abs, Rel: 2 * rel, ULP: 1},
		Reason: reason,
	}
}

// Exact is the Tolerance of an op that computes the same bits everywhere, such as a copy.
func Exact(reason string) Tolerance { return Tolerance{Reason: reason} }

// Of returns the bound for results of a dtype: equality for integers.
func (t Tolerance) Of(d tensor.DType) tensor.Tolerance {
	switch {
	case !d.IsFloat():
		return tensor.Tolerance{}
	case d == tensor.F32 || d == tensor.F64:
		return t.Wide
	}
	return t.Narrow
}
