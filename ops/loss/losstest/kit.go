// Package losstest has the conformance cases of package loss.
package losstest

import (
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package loss.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[loss.CrossEntropyFwdArgs]{Op: loss.CrossEntropyFwd, Cases: crossEntropyFwdCases}.Suite(),
			opstest.Spec[loss.CrossEntropyBwdArgs]{Op: loss.CrossEntropyBwd, Cases: crossEntropyBwdCases, Refresh: crossEntropyRefresh}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: loss.CrossEntropyBwd, Forward: loss.CrossEntropyFwd, Cases: crossEntropyGradCases},
		},
	}
}
