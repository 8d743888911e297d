package opencl

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl/activation"
	"github.com/primus-fl/primus/vendors/opencl/attention"
	"github.com/primus-fl/primus/vendors/opencl/dropout"
	"github.com/primus-fl/primus/vendors/opencl/embedding"
	"github.com/primus-fl/primus/vendors/opencl/gemm"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/loss"
	"github.com/primus-fl/primus/vendors/opencl/moe"
	"github.com/primus-fl/primus/vendors/opencl/norm"
	"github.com/primus-fl/primus/vendors/opencl/optim"
	"github.com/primus-fl/primus/vendors/opencl/quant"
	"github.com/primus-fl/primus/vendors/opencl/rope"
	"github.com/primus-fl/primus/vendors/opencl/softmax"
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
