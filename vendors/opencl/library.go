package opencl

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl/internal/activation"
	"github.com/primus-fl/primus/vendors/opencl/internal/attention"
	"github.com/primus-fl/primus/vendors/opencl/internal/dropout"
	"github.com/primus-fl/primus/vendors/opencl/internal/embedding"
	"github.com/primus-fl/primus/vendors/opencl/internal/gemm"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/internal/loss"
	"github.com/primus-fl/primus/vendors/opencl/internal/moe"
	"github.com/primus-fl/primus/vendors/opencl/internal/norm"
	"github.com/primus-fl/primus/vendors/opencl/internal/optim"
	"github.com/primus-fl/primus/vendors/opencl/internal/quant"
	"github.com/primus-fl/primus/vendors/opencl/internal/rope"
	"github.com/primus-fl/primus/vendors/opencl/internal/softmax"
)

// Source returns the impls vendor.opencl. They do not ask whether there is a driver: whoever has
// operands on an OpenCL device has found one.
func Source() opregistry.Source {
	return opregistry.Source{Name: kernel.Vendor, Impls: slices.Concat(
		gemm.Impls(),
		attention.Impls(),
		norm.Impls(), activation.Impls(), softmax.Impls(), rope.Impls(), dropout.Impls(),
		embedding.Impls(), loss.Impls(), optim.Impls(), moe.Impls(), quant.Impls(),
	)}
}
