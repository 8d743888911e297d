package opencl

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Vendor is the name of the vendor.
const Vendor = "opencl"

// Storage are the dtypes that prelude.cl can read and write.
var Storage = []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}

// openclImpl returns vendor.opencl of an op, whose lead operand has one of the dtypes.
func openclImpl[A any](op *opregistry.Op[A], run opregistry.Func[A], dtypes []tensor.DType) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: "vendor." + Vendor, Kind: opregistry.KindVendor, Vendor: Vendor, Priority: 100, Run: run,
		Support: opregistry.Support{Devices: []device.Type{device.TypeOpenCL}, DTypes: dtypes},
	}
}

// typeName returns what prelude.cl calls a dtype of Storage, F32 for an operand that is left out or
// that a kernel reads as integers.
func typeName(d tensor.DType) string {
	switch d {
	case tensor.BF16:
		return "BF16"
	case tensor.F16:
		return "F16"
	case tensor.F32, tensor.Unspecified, tensor.I64, tensor.I32, tensor.I16, tensor.U8, tensor.Bool:
		return "F32"
	default:
		panic("BUG: opencl: prelude.cl has no name for " + d.String())
	}
}

// operandViews turns the operands of a call into arguments of kernels. It keeps the first reason to
// decline the call.
type operandViews struct {
	Device *opencl.Device // that the operands lie on, nil if none has elements
	Err    error
}

// decline notes why the call is not served.
func (v *operandViews) decline(format string, args ...any) {
	if v.Err == nil {
		v.Err = opregistry.Unsupported(format, args...)
	}
}

// on requires memory of the device of the call. It reports whether there is no reason to decline.
func (v *operandViews) on(name string, t *tensor.Tensor) bool {
	d, _, ok := opencl.Of(t)
	switch {
	case v.Err != nil:
	case t.NumElements() == 0 && t.Device().Type == device.TypeOpenCL: // may have no memory
	case !ok:
		v.decline("%s is on %v, this impl serves operands on an OpenCL device", name, t.Device())
	case v.Device != nil && v.Device != d:
		v.decline("%s is on %v, other operands are on %v", name, t.Device(), v.Device.Device())
	default:
		v.Device = d
	}
	return v.Err == nil
}

// stored requires memory of the device with elements of a dtype of Storage.
func (v *operandViews) stored(name string, t *tensor.Tensor) bool {
	if !v.on(name, t) {
		return false
	}
	if d := t.DType(); d != tensor.F32 && d != tensor.BF16 && d != tensor.F16 {
		v.decline("dtype %v of %s, this impl serves f32, bf16 and f16", d, name)
	}
	return v.Err == nil
}

// matrix is a tensor as rows, whose leading axes are flattened. Row and Col are the distances of
// elements along a column and along a row.
type matrix struct {
	*tensor.Tensor
	Rows, Cols int
	Row, Col   int
}

// matrix requires a tensor of a dtype of Storage whose leading axes have a common distance.
func (v *operandViews) matrix(name string, t *tensor.Tensor) matrix {
	if !v.stored(name, t) {
		return matrix{}
	}
	return v.anyMatrix(name, t)
}

// anyMatrix is Matrix for any dtype.
func (v *operandViews) anyMatrix(name string, t *tensor.Tensor) matrix {
	if !v.on(name, t) {
		return matrix{}
	}
	shape, strides := t.Shape(), t.Strides()
	last := len(shape) - 1
	m := matrix{Tensor: t, Rows: shape.Rows(), Cols: shape.Cols(), Row: max(shape.Cols(), 1), Col: 1}
	if m.Rows == 0 || m.Cols == 0 {
		return m
	}
	if last >= 0 && m.Cols > 1 {
		m.Col = strides[last]
	}
	next := -1
	for axis := last - 1; axis >= 0; axis-- {
		if shape[axis] == 1 {
			continue
		}
		if next < 0 {
			m.Row = strides[axis]
		} else if strides[axis] != next {
			v.decline("strides %v of %s %v, this impl serves rows at one distance", strides, name, shape)
			return m
		}
		next = strides[axis] * shape[axis]
	}
	v.fits(name, t)
	return m
}

// vector requires a contiguous tensor of a dtype of Storage.
func (v *operandViews) vector(name string, t *tensor.Tensor) {
	if v.stored(name, t) && !t.IsContiguous() {
		v.decline("strides %v of %s %v, this impl serves contiguous elements", t.Strides(), name, t.Shape())
	}
	v.fits(name, t)
}

// fits requires lengths and distances that fit the integers of kernels.
func (v *operandViews) fits(name string, t *tensor.Tensor) {
	for _, list := range [...][]int{t.Shape(), t.Strides()} {
		for _, n := range list {
			if n > math.MaxInt32 || n < math.MinInt32 {
				v.decline("length or distance %d of %s, this impl serves those below 2³¹", n, name)
			}
		}
	}
}

// transposed returns the matrix with rows and columns exchanged.
func (m matrix) transposed() matrix {
	m.Rows, m.Cols, m.Row, m.Col = m.Cols, m.Rows, m.Col, m.Row
	return m
}

// buf is a tensor as an argument of a kernel, a null pointer if it has no elements.
func buf(t *tensor.Tensor) opencl.Arg {
	if t.NumElements() == 0 {
		t = nil
	}
	return opencl.Buf(t)
}

// intArg is an int as an argument of a kernel.
func intArg(n int) opencl.Arg { return opencl.I32(int32(n)) }

// usualGroup is a usual size of a work-group. Launches name a size, and round their work-items up:
// PoCL compiles a kernel again for each size that it chooses itself.
const usualGroup = 16

// roundUp returns the least multiple of size that is at least n.
func roundUp(n, size int) int { return (n + size - 1) / size * size }

// define returns an option of the compiler.
func define(name string, value any) string { return fmt.Sprintf("-D%s=%v", name, value) }
