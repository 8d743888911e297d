// Package loss has the oracles of the ops of the family loss.
package loss

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(loss.CrossEntropyFwd, crossEntropyFwd),
		host.Impl(loss.CrossEntropyBwd, crossEntropyBwd),
	}
}
