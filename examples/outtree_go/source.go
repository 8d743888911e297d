// Package acme has ops of the vendor acme: root-mean-square normalisation, its
// gradient, and a matrix product.
package acme

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// id of each impl of the package.
const id = "vendor.acme"

// block is how many rows or columns a worker computes at a time.
const block = 16

// Source returns the ops. A program that `primus plugins build` makes registers them.
func Source() opregistry.Source {
	f32 := opregistry.Support{DTypes: []tensor.DType{tensor.F32}}
	return opregistry.Source{
		Name:    "acme",
		Version: "1.0.0",
		Impls: []opregistry.Impl{
			impl(norm.RMSNormFwd, rmsnormFwd, f32),
			impl(norm.RMSNormBwd, rmsnormBwd, f32),
			impl(gemm.GenericGemm, genericGemm, opregistry.Support{DTypes: f32.DTypes, Call: gemmServes}),
		},
	}
}

func impl[A any](op *opregistry.Op[A], run opregistry.Func[A], support opregistry.Support) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: id, Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100, Run: run, Support: support,
	}
}

// floats returns the elements of tensors that are f32 and contiguous, and declines
// others. It is called before anything is written.
func floats(tensors ...*tensor.Tensor) ([][]float32, error) {
	all := make([][]float32, len(tensors))
	for i, t := range tensors {
		if t.DType() != tensor.F32 || !t.IsContiguous() || t.Device().Type != device.TypeCPU {
			return nil, opregistry.Unsupported("operand %v: only contiguous f32 in the memory of the CPU is served", t)
		}
		all[i] = tensor.Data[float32](t)
	}
	return all, nil
}
