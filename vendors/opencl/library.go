package opencl

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
)

// Source returns the impls vendor.opencl. They do not ask whether there is a driver: whoever has
// operands on an OpenCL device has found one.
func Source() opregistry.Source {
	return opregistry.Source{Name: Vendor, Impls: slices.Concat(
		gemmImpls(),
		attentionImpls(),
		normImpls(), Impls(), softmaxImpls(), ropeImpls(), dropoutImpls(),
		embeddingImpls(), lossImpls(), optimImpls(), moeImpls(), quantImpls(),
	)}
}
