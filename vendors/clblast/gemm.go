package clblast

import (
	"fmt"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// The constants of clblast_c.h.
const (
	rowMajor     = 101
	noTransposed = 111
	transposed   = 112
)

// matrix is an operand: rows of contiguous elements at one pitch in an OpenCL buffer.
type matrix struct {
	buffer opencl.Buffer
	at, ld uintptr // in elements
}

// gemm implements gemm.GenericGemm without bias and GELU, for operands that are all f32 or all f64.
func (l *Library) gemm(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
	h, err := l.open()
	if err != nil {
		return opregistry.Unsupported("%v", err)
	}
	m, n, k := a.Dims()
	alpha, beta := a.Alpha.Or(1), float32(0)
	if a.Accumulate {
		beta = a.Beta.Or(1)
	}
	switch {
	case a.Gelu || a.Bias != nil:
		return opregistry.Unsupported("bias and GELU are not in the library")
	case alpha == 0:
		return opregistry.Unsupported("given alpha 0, for which the library ignores A and B even if they hold NaN")
	case m == 0 || n == 0 || k == 0:
		return opregistry.Unsupported("given a %d×%d×%d product, the library takes sizes of at least 1", m, n, k)
	}
	var operands [3]matrix
	var d *opencl.Device
	for i, t := range [...]*tensor.Tensor{a.B, a.A, a.D} {
		if t.DType() != a.A.DType() {
			return opregistry.Unsupported("given dtypes %v and %v, want one for all operands", a.A.DType(), t.DType())
		}
		on, buffer, ok := opencl.Of(t)
		if !ok || d != nil && on != d {
			return opregistry.Unsupported("given memory on %v, want that of one OpenCL device", t.Device())
		}
		ld, ok := blas.Pitch(t)
		if !ok {
			return opregistry.Unsupported("given strides that are not rows of contiguous elements at one pitch")
		}
		d, operands[i] = on, matrix{buffer, uintptr(buffer.Offset) / uintptr(t.DType().Size()), uintptr(ld)}
	}
	if a.A.DType() == tensor.F64 && !d.Info().FP64 {
		return opregistry.Unsupported("given f64, which %v cannot compute", d)
	}
	left, right, out := operands[0], operands[1], operands[2]
	return d.Queue(x.Stream(), func(queue uintptr) error {
		var status int32
		if a.A.DType() == tensor.F64 {
			status = h.dgemm(rowMajor, flag(a.TransB), flag(a.TransA), uintptr(m), uintptr(n), uintptr(k), float64(alpha),
				left.buffer.Memory, left.at, left.ld, right.buffer.Memory, right.at, right.ld, float64(beta), out.buffer.Memory, out.at, out.ld, &queue, 0)
		} else {
			status = h.sgemm(rowMajor, flag(a.TransB), flag(a.TransA), uintptr(m), uintptr(n), uintptr(k), alpha,
				left.buffer.Memory, left.at, left.ld, right.buffer.Memory, right.at, right.ld, beta, out.buffer.Memory, out.at, out.ld, &queue, 0)
		}
		if status != 0 {
			return fmt.Errorf("clblast: product of %d×%d×%d of %v: status %d of clblast_c.h", m, n, k, a.A.DType(), status)
		}
		return nil
	})
}

func flag(t bool) int32 {
	if t {
		return transposed
	}
	return noTransposed
}
