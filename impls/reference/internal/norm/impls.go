// Package norm has the oracles of the ops of the family norm.
package norm

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(norm.RMSNormFwd, rmsnormFwd),
		host.Impl(norm.RMSNormBwd, rmsnormBwd),
		host.Impl(norm.ResidualAdd, residualAdd),
		host.Impl(norm.RMSNormBwdAdd, rmsnormBwdAdd),
		host.Impl(norm.LayerNormFwd, layernormFwd),
		host.Impl(norm.LayerNormBwd, layernormBwd),
	}
}
