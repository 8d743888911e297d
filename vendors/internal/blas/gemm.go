package blas

import (
	"runtime"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// Limits says which products a library takes.
type Limits struct {
	// MinFLOP is the smallest 2·m·n·k that is worth a call of the library; MinBF16 is the smallest
	// for operands in bf16, or 0 for a library that does not multiply them.
	MinFLOP, MinBF16 float64

	// Flushes are the dtypes of operands that the library takes as 0 where they are subnormal.
	Flushes []tensor.DType

	// MaxDim is the largest size and leading dimension that fits the library's integers.
	MaxDim int
}

// call is what one call of Gemm passes to the library and to the workers.
type call struct {
	product Product
	base    baseTask
	sums    sumTask
}

var calls = sync.Pool{New: func() any { return new(call) }}

// Gemm computes gemm.GenericGemm with a library's product. All operands are in CPU memory. They are
// f32, or A and B are bf16 if the library is a BF16GEMM, or all are f64 if it is a DGEMM. The last
// axis is contiguous, leading axes have a common pitch, and Bias is contiguous. Sums are kept in
// f32, or in f64 for operands in f64; the bias gradient is summed in f64 over blocks of rows. The
// result depends on the library and on its number of threads. Gemm allocates nothing in a steady
// state unless lib does.
func Gemm(x *opregistry.Exec, a gemm.GenericGemmArgs, lib SGEMM, limits Limits) error {
	factor, result, err := dtypesOf(lib, a.A.DType(), &limits)
	if err != nil {
		return err
	}
	if err := checkOperands(a, factor, result); err != nil {
		return err
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
		return opregistry.Unsupported("given strides that are not rows of contiguous elements at one pitch")
	case alpha == 0:
		return opregistry.Unsupported("given alpha 0, for which BLAS ignores A and B even if they hold NaN")
	case flop > 0 && flop < limits.MinFLOP:
		return opregistry.Unsupported("given a %d×%d×%d product, below the %.0f FLOP that are worth the call", m, n, k, limits.MinFLOP)
	case max(m, n, k, right.ld, left.ld, d.ld) > limits.MaxDim:
		return opregistry.Unsupported("given sizes %d×%d×%d or a pitch beyond %d, the largest the library takes", m, n, k, limits.MaxDim)
	}

	c := calls.Get().(*call)
	defer calls.Put(c)
	var bias matrix
	if a.Bias != nil {
		bias = vector(a.Bias)
		if a.Grad {
			c.sums.run(x.Pool(), left, bias)
			bias = matrix{}
		}
	}
	if m == 0 || n == 0 {
		return nil
	}
	if bias.first != nil || k == 0 {
		c.base.run(x.Pool(), d, bias, beta)
		beta = 1
	}
	if k == 0 {
		return nil
	}
	annotate(&left, &right, &d)
	c.product = Product{
		Exec: x, DType: left.dtype, TransLeft: a.TransB, TransRight: a.TransA,
		M: m, N: n, K: k, Alpha: alpha, Beta: beta,
		Left: left.first, LDLeft: left.ld, Right: right.first, LDRight: right.ld, Out: d.first, LDOut: d.ld,
	}
	err = multiply(lib, &c.product)
	c.product = Product{}
	runtime.KeepAlive(a)
	return err
}

// dtypesOf returns the dtypes of operands and result of the library's product for an A of dtype d,
// and adapts the limits to it. The error says why such a product is not worth the call.
func dtypesOf(lib SGEMM, d tensor.DType, limits *Limits) (factor, result tensor.DType, err error) {
	switch d {
	case tensor.BF16:
		if narrow, ok := lib.(BF16GEMM); ok {
			limits.MinFLOP = limits.MinBF16
			return tensor.BF16, tensor.F32, narrow.BF16()
		}
	case tensor.F64:
		if _, ok := lib.(DGEMM); ok {
			return tensor.F64, tensor.F64, nil
		}
	case tensor.F32:
		return tensor.F32, tensor.F32, nil
	default:
		return 0, 0, opregistry.Unsupported("given dtype %v, want f32", d)
	}
	return 0, 0, opregistry.Unsupported("given dtype %v, which this library does not multiply", d)
}

// checkOperands declines operands that are not in CPU memory or have other dtypes.
func checkOperands(a gemm.GenericGemmArgs, factor, result tensor.DType) error {
	for i, t := range [...]*tensor.Tensor{a.A, a.B, a.D, a.Bias} {
		if t == nil {
			continue
		}
		want := result
		if i < 2 {
			want = factor
		}
		if d := t.DType(); d != want {
			return opregistry.Unsupported("given dtype %v, want %v", d, want)
		}
		if t.Device().Type != device.TypeCPU {
			return opregistry.Unsupported("given memory on %v, want cpu", t.Device())
		}
	}
	return nil
}

// multiply calls the library's product for the dtype of the operands.
func multiply(lib SGEMM, p *Product) error {
	switch p.DType {
	case tensor.BF16:
		return lib.(BF16GEMM).BF16GEMM(p)
	case tensor.F64:
		return lib.(DGEMM).DGEMM(p)
	case tensor.F32:
		return lib.SGEMM(p)
	default:
		panic("BUG: blas: product of " + p.DType.String())
	}
}

// annotate tells the race detector what the library, which it cannot see, is about to read and
// write.
func annotate(left, right, out *matrix) {
	if !race.Enabled {
		return
	}
	for _, m := range [...]*matrix{left, right} {
		for i := range m.rows {
			race.ReadMemory(m.at(i, 0), m.dtype.Size()*m.cols)
		}
	}
	for i := range out.rows {
		race.WriteMemory(out.at(i, 0), out.dtype.Size()*out.cols)
	}
}
