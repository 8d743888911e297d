// Package rope has the oracles of the ops of the family rope.
package rope

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	ropeops "github.com/primus-fl/primus/ops/rope"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(ropeops.FusedRopeForward, fusedRopeForward),
		host.Impl(ropeops.FusedRopeBackward, fusedRopeBackward),
		host.Impl(ropeops.FusedQKVRopeForward, fusedQKVRopeForward),
		host.Impl(ropeops.FusedQKVRopeBackward, fusedQKVRopeBackward),
	}
}
