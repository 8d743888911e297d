package opencl

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl/attention"
	"github.com/primus-fl/primus/vendors/opencl/gemm"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

// Source returns the impls vendor.opencl. They are always available: whoever has operands on an
// OpenCL device has found a driver.
func Source() opregistry.Source {
	return opregistry.Source{Name: kernel.Vendor, Impls: slices.Concat(
		gemm.Impls(),
		attention.Impls(),
	)}
}
