// Package dropouttest has the conformance cases of package dropout.
package dropouttest

import (
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package dropout.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[dropout.DropoutFwdArgs]{Op: dropout.DropoutFwd, Cases: dropoutFwdCases}.Suite(),
			opstest.Spec[dropout.DropoutBwdArgs]{Op: dropout.DropoutBwd, Cases: dropoutBwdCases, Refresh: dropoutRefresh}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: dropout.DropoutBwd, Forward: dropout.DropoutFwd, Cases: dropoutGradCases},
		},
	}
}
