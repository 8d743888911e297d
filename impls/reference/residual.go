package reference

import "github.com/primus-fl/primus/ops/norm"

// residualAdd implements norm.ResidualAdd.
func residualAdd(a norm.ResidualAddArgs) error {
	sum := a.A.Float64s()
	for i, b := range a.B.Float64s() {
		sum[i] += b
	}
	return a.Output.SetFloat64s(sum)
}
