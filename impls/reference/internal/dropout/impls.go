// Package dropout has the oracles of the ops of the family dropout.
package dropout

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(dropout.DropoutFwd, dropoutFwd),
		host.Impl(dropout.DropoutBwd, dropoutBwd),
	}
}
