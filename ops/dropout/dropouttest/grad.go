package dropouttest

import (
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func dropoutGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[dropout.DropoutFwdArgs, dropout.DropoutBwdArgs]
	return []opstest.GradCase{opstest.NewGradCase("elements", dropout.DropoutFwd, dropout.DropoutBwd, func(s *opstest.Stage) derived {
		f, b := dropoutFwdArgs(s, opstest.Dense, tensor.F64, 3, 7), dropoutBwdArgs(s, opstest.Dense, tensor.F64, 3, 7)
		return derived{
			Forward: []dropout.DropoutFwdArgs{f}, Backward: []dropout.DropoutBwdArgs{b},
			Y: f.Out, DY: b.GradOutput, Wrt: []opstest.Derivative{{Name: "x", X: f.Input, DX: b.GradInput}}, Refresh: dropoutRefresh,
		}
	})}
}
