package reference

import "github.com/primus-fl/primus/opregistry/ops"

// residualAdd implements ops.ResidualAdd.
func residualAdd(a ops.ResidualAddArgs) error {
	sum := a.A.Float64s()
	for i, b := range a.B.Float64s() {
		sum[i] += b
	}
	return a.Output.SetFloat64s(sum)
}
