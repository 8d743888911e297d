// Package ropetest has the conformance cases of package rope.
package ropetest

import (
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package rope.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[rope.FusedRopeArgs]{Op: rope.FusedRopeForward, Cases: ropeCases}.Suite(),
			opstest.Spec[rope.FusedRopeArgs]{Op: rope.FusedRopeBackward, Cases: ropeCases}.Suite(),
			opstest.Spec[rope.FusedQKVRopeArgs]{Op: rope.FusedQKVRopeForward, Cases: qkvRopeForwardCases}.Suite(),
			opstest.Spec[rope.FusedQKVRopeArgs]{Op: rope.FusedQKVRopeBackward, Cases: qkvRopeBackwardCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: rope.FusedRopeBackward, Forward: rope.FusedRopeForward, Cases: ropeGradCases},
			{Backward: rope.FusedQKVRopeBackward, Forward: rope.FusedQKVRopeForward, Cases: qkvRopeGradCases},
		},
	}
}
