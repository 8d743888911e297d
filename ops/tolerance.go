package ops

import "github.com/primus-fl/primus/tensor"

// Tolerance returns how far a written operand of dtype d of an op may differ from the result of
// another correct implementation, for operands of magnitude 1, and why. It is zero, which means
// equality, for integers and for an op that is not in the catalogue; the reason of the latter is
// "".
func Tolerance(op string, d tensor.DType) (tol tensor.Tolerance, reason string) {
	for _, o := range All() {
		if o.Name() == op {
			return o.Tolerance().Of(d), o.Tolerance().Reason
		}
	}
	return tensor.Tolerance{}, ""
}
