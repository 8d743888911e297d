package blas

import (
	"runtime"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// Limits says which products a library takes.
type Limits struct {
	// MinFLOP is the least 2·m·n·k that is worth the call of the library; MinBF16 is
	// that of operands in bf16, 0 for a library that does not multiply them.
	MinFLOP, MinBF16 float64

	// MaxDim is the largest size and leading dimension that the library's
	// integers hold.
	MaxDim int
}

// call is what one call of Gemm hands to the library and to the workers.
type call struct {
	product Product
	base    baseTask
	sums    sumTask
}

var calls = sync.Pool{New: func() any { return new(call) }}

// Gemm computes ops.GenericGemm with a library's product. All operands are f32 in
// CPU memory, or A and B bf16 if the library is a BF16GEMM; the last axis is contiguous and leading axes have a common
// pitch; Bias is contiguous. Sums are kept in f32, the bias gradient's in f64 over
// blocks of rows. The result depends on the library and on its number of
// threads. It allocates nothing in a steady state unless lib does.
func Gemm(x *opregistry.Exec, a ops.GenericGemmArgs, lib SGEMM, limits Limits) error {
	narrow, isBF16 := lib.(BF16GEMM)
	if isBF16 = isBF16 && a.A.DType() == tensor.BF16; isBF16 {
		if err := narrow.BF16(); err != nil {
			return err
		}
		limits.MinFLOP = limits.MinBF16
	}
	for i, t := range [...]*tensor.Tensor{a.A, a.B, a.D, a.Bias} {
		if t == nil {
			continue
		}
		if d := t.DType(); d != tensor.F32 && (i > 1 || !isBF16) {
			return opregistry.Unsupported("got dtype %v, want f32", d)
		}
		if t.Device().Type != device.TypeCPU {
			return opregistry.Unsupported("got memory on %v, want cpu", t.Device())
		}
	}
	alpha, beta := a.Alpha.Or(1), float32(0)
	if a.Accumulate {
		beta = a.Beta.Or(1)
	}
	right, okA := matrixOf(a.A)
	left, okB := matrixOf(a.B)
	d, okD := matrixOf(a.D)
	m, n, k := a.Dims()
	flop := 2 * float64(m) * float64(n) * float64(k)
	switch {
	case a.Gelu:
		return opregistry.Unsupported("the GELU epilogue is not in the library")
	case !okA || !okB || !okD || a.Bias != nil && !a.Bias.IsContiguous():
		return opregistry.Unsupported("got strides that are not rows of contiguous elements at one pitch")
	case alpha == 0:
		return opregistry.Unsupported("got alpha 0, for which BLAS does not look at A and B, NaN or not")
	case flop > 0 && flop < limits.MinFLOP:
		return opregistry.Unsupported("got a %d×%d×%d product, below the %.0f FLOP that are worth the call", m, n, k, limits.MinFLOP)
	case max(m, n, k, right.ld, left.ld, d.ld) > limits.MaxDim:
		return opregistry.Unsupported("got sizes %d×%d×%d or a pitch beyond %d, the largest the library takes", m, n, k, limits.MaxDim)
	}

	c := calls.Get().(*call)
	defer calls.Put(c)
	var bias []float32
	if a.Bias != nil {
		bias = tensor.Data[float32](a.Bias)
		if a.Grad {
			c.sums.run(x.Pool(), left, bias)
			bias = nil
		}
	}
	if m == 0 || n == 0 {
		return nil
	}
	if bias != nil || k == 0 {
		c.base.run(x.Pool(), d, bias, beta)
		beta = 1
	}
	if k == 0 {
		return nil
	}
	annotate(&left, &right, &d)
	c.product = Product{
		TransLeft: a.TransB, TransRight: a.TransA,
		M: m, N: n, K: k, Alpha: alpha, Beta: beta,
		LDLeft: left.ld, LDRight: right.ld, Out: (*float32)(d.first), LDOut: d.ld,
	}
	var err error
	if isBF16 {
		c.product.LeftBF16, c.product.RightBF16 = (*tensor.BFloat16)(left.first), (*tensor.BFloat16)(right.first)
		err = narrow.BF16GEMM(&c.product)
	} else {
		c.product.Left, c.product.Right = (*float32)(left.first), (*float32)(right.first)
		err = lib.SGEMM(&c.product)
	}
	c.product = Product{}
	runtime.KeepAlive(a)
	return err
}
