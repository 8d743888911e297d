package opscases

import (
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func dropoutGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[dropoutops.DropoutFwdArgs, dropoutops.DropoutBwdArgs]
	return []opstest.GradCase{opstest.NewGradCase("elements", dropoutops.DropoutFwd, dropoutops.DropoutBwd, func(s *opstest.Stage) derived {
		f, b := dropoutFwdArgs(s, opstest.Dense, tensor.F64, 3, 7), dropoutBwdArgs(s, opstest.Dense, tensor.F64, 3, 7)
		return derived{
			Forward: []dropoutops.DropoutFwdArgs{f}, Backward: []dropoutops.DropoutBwdArgs{b},
			Y: f.Out, DY: b.GradOutput, Wrt: []opstest.Derivative{{Name: "x", X: f.Input, DX: b.GradInput}}, Refresh: dropoutRefresh,
		}
	})}
}
