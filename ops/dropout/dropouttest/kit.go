// Package dropouttest has the conformance cases of package dropout.
package dropouttest

import (
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package dropout.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[dropoutops.DropoutFwdArgs]{Op: dropoutops.DropoutFwd, Cases: dropoutFwdCases}.Suite(),
			opstest.Spec[dropoutops.DropoutBwdArgs]{Op: dropoutops.DropoutBwd, Cases: dropoutBwdCases, Refresh: dropoutRefresh}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: dropoutops.DropoutBwd, Forward: dropoutops.DropoutFwd, Cases: dropoutGradCases},
		},
	}
}
