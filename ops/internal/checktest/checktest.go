package checktest

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Refusal is one mistake of a caller.
type Refusal[A any] struct {
	Name    string
	Edit    func(a *A)
	Operand string // that the error names
	Want    string // part of what the error expects
}

// Validation checks that good arguments pass without an allocation and that each mistake is
// refused with an error that names op and operand. good returns fresh arguments.
func Validation[A any](t *testing.T, op *opregistry.Op[A], good func() A, refusals []Refusal[A]) {
	t.Helper()
	a := good()
	require.NoError(t, op.Validate(a))
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		if err := op.Validate(a); err != nil {
			t.Error(err)
		}
	}), "allocations of a good call")
	names := map[string]bool{}
	for _, r := range refusals {
		require.False(t, names[r.Name], "%s twice", r.Name)
		names[r.Name] = true
		Refused(t, op, good, r)
	}
}

// Refused checks that a mistake is refused with an error that names op and operand.
func Refused[A any](t *testing.T, op *opregistry.Op[A], good func() A, r Refusal[A]) {
	t.Helper()
	t.Run(r.Name, func(t *testing.T) {
		wrong := good()
		r.Edit(&wrong)
		err := op.Validate(wrong)
		arg, ok := errors.AsType[*opregistry.ArgError](err)
		require.True(t, ok, "got %v, want an ArgError", err)
		assert.Equal(t, op.Name(), arg.Op)
		assert.Equal(t, r.Operand, arg.Operand, "%v", err)
		assert.Contains(t, arg.Want, r.Want, "%v", err)
		assert.NotEmpty(t, arg.Got)
	})
}

// Accepted checks calls that are unusual but valid.
func Accepted[A any](t *testing.T, op *opregistry.Op[A], good func() A, edits map[string]func(a *A)) {
	t.Helper()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			a := good()
			edit(&a)
			assert.NoError(t, op.Validate(a))
		})
	}
}

// Access is what an op does to its operands, by name.
type Access map[string]opregistry.Access

func Operands[A any](t *testing.T, op *opregistry.Op[A], a A, want Access) {
	t.Helper()
	got := Access{}
	for _, o := range op.Operands(a) {
		assert.NotNil(t, o.Tensor, o.Name)
		assert.NotContains(t, got, o.Name)
		got[o.Name] = o.Access
	}
	assert.Equal(t, want, got)
}

// Zeros returns a zeroed tensor.
func Zeros(d tensor.DType, shape ...int) *tensor.Tensor {
	x, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
	if err != nil {
		panic(err)
	}
	return x
}

func F32(shape ...int) *tensor.Tensor { return Zeros(tensor.F32, shape...) }

func I32(v ...int32) *tensor.Tensor {
	x, err := tensor.FromSlice(v)
	if err != nil {
		panic(err)
	}
	return x
}

func I64(v ...int64) *tensor.Tensor {
	x, err := tensor.FromSlice(v)
	if err != nil {
		panic(err)
	}
	return x
}

// Shifted returns a view with x's shape and dtype that partly overlaps x; x becomes a view of the
// same memory.
func Shifted(x **tensor.Tensor) *tensor.Tensor {
	shape := (*x).Shape()
	memory := Zeros((*x).DType(), shape.NumElements()+1)
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= shape[i]
	}
	view := func(offset int) *tensor.Tensor {
		v, err := memory.AsStrided(shape, strides, offset)
		if err != nil {
			panic(err)
		}
		return v
	}
	*x = view(0)
	return view(1)
}

// Flat returns a view of x's memory as a vector of n elements.
func Flat(x *tensor.Tensor, n int) *tensor.Tensor {
	v, err := x.AsStrided([]int{n}, []int{1}, x.Offset())
	if err != nil {
		panic(err)
	}
	return v
}

// BytesOf returns the memory of v.
func BytesOf(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// Overlaid returns n zeros of f32 with this shape, and a view of the first few of them as i32.
func Overlaid(n, few int, shape ...int) (floats, ints *tensor.Tensor) {
	memory := make([]int32, n)
	floats, err := tensor.FromBytes(BytesOf(memory), tensor.F32, shape...)
	if err != nil {
		panic(err)
	}
	return floats, I32(memory[:few]...)
}

func ListOf(d tensor.DType) []*tensor.Tensor { return []*tensor.Tensor{Zeros(d, 3), Zeros(d, 2, 2)} }

// EverySecond returns a view with gaps of n indexes.
func EverySecond(n int) *tensor.Tensor {
	x, err := Zeros(tensor.I32, 2*n).AsStrided([]int{n}, []int{2}, 0)
	if err != nil {
		panic(err)
	}
	return x
}

func Must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}

// View returns a contiguous view of the beginning of x's memory.
func View(x *tensor.Tensor, shape ...int) *tensor.Tensor {
	v, err := Flat(x, tensor.Shape(shape).NumElements()).Reshape(shape...)
	if err != nil {
		panic(err)
	}
	return v
}

func List() []*tensor.Tensor { return []*tensor.Tensor{F32(3), F32(2, 2)} }
