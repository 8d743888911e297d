package gonum

import (
	"math"
	"runtime/debug"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	gemmops "github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// priority is below that of vendors with a library: OpenBLAS and oneDNN take a fraction of the time
// for a product.
const priority = 80

// Source returns the impl vendor.gonum of generic_gemm.
func Source() opregistry.Source {
	return opregistry.Source{
		Name:    "gonum",
		Version: version(),
		Impls: []opregistry.Impl{{
			Op:       gemmops.GenericGemm,
			ID:       "vendor.gonum",
			Kind:     opregistry.KindVendor,
			Vendor:   "gonum",
			Priority: priority,
			Run:      opregistry.Func[gemmops.GenericGemmArgs](gemm),
			Support:  opregistry.Support{DTypes: []tensor.DType{tensor.F32, tensor.F64}},
		}},
	}
}

// gemm computes gemm.GenericGemm as blas.Gemm says, in f32 or f64. The result has the same bits for
// any number of workers; it differs between platforms, whose kernels sum in another order, and with
// the alignment of operands, up to which the kernels of gonum add elements one by one. Every
// element of op(A) and op(B) is used, so that NaN and infinities reach D even where the other
// factor is zero.
func gemm(x *opregistry.Exec, a gemmops.GenericGemmArgs) error {
	return blas.Gemm(x, a, library{}, blas.Limits{MaxDim: math.MaxInt})
}

// module is gonum's module path.
const module = "gonum.org/v1/gonum"

// version returns the version of gonum that the program was built with, or "" when the build
// information lacks it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}
