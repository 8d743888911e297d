package ops_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// refusal is one mistake of a caller.
type refusal[A any] struct {
	name    string
	edit    func(a *A)
	operand string // that the error names
	want    string // part of what the error expects
}

// testValidation checks that good arguments pass without an allocation and that each mistake is
// refused with an error that names op and operand. good returns fresh arguments.
func testValidation[A any](t *testing.T, op *opregistry.Op[A], good func() A, refusals []refusal[A]) {
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
		require.False(t, names[r.name], "%s twice", r.name)
		names[r.name] = true
		testRefused(t, op, good, r)
	}
}

// testRefused checks that a mistake is refused with an error that names op and operand.
func testRefused[A any](t *testing.T, op *opregistry.Op[A], good func() A, r refusal[A]) {
	t.Helper()
	t.Run(r.name, func(t *testing.T) {
		wrong := good()
		r.edit(&wrong)
		err := op.Validate(wrong)
		arg, ok := errors.AsType[*opregistry.ArgError](err)
		require.True(t, ok, "got %v, want an ArgError", err)
		assert.Equal(t, op.Name(), arg.Op)
		assert.Equal(t, r.operand, arg.Operand, "%v", err)
		assert.Contains(t, arg.Want, r.want, "%v", err)
		assert.NotEmpty(t, arg.Got)
	})
}

// testAccepted checks calls that are unusual but valid.
func testAccepted[A any](t *testing.T, op *opregistry.Op[A], good func() A, edits map[string]func(a *A)) {
	t.Helper()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			a := good()
			edit(&a)
			assert.NoError(t, op.Validate(a))
		})
	}
}

// access is what an op does to its operands, by name.
type access map[string]opregistry.Access

func testOperands[A any](t *testing.T, op *opregistry.Op[A], a A, want access) {
	t.Helper()
	got := access{}
	for _, o := range op.Operands(a) {
		assert.NotNil(t, o.Tensor, o.Name)
		assert.NotContains(t, got, o.Name)
		got[o.Name] = o.Access
	}
	assert.Equal(t, want, got)
}

// of returns a zeroed tensor.
func of(d tensor.DType, shape ...int) *tensor.Tensor {
	x, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
	if err != nil {
		panic(err)
	}
	return x
}

func f32(shape ...int) *tensor.Tensor { return of(tensor.F32, shape...) }

func i32(v ...int32) *tensor.Tensor {
	x, err := tensor.FromSlice(v)
	if err != nil {
		panic(err)
	}
	return x
}

func i64(v ...int64) *tensor.Tensor {
	x, err := tensor.FromSlice(v)
	if err != nil {
		panic(err)
	}
	return x
}

// shifted returns a view with x's shape and dtype that partly overlaps x; x becomes a view of the
// same memory.
func shifted(x **tensor.Tensor) *tensor.Tensor {
	shape := (*x).Shape()
	memory := of((*x).DType(), shape.NumElements()+1)
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

// flat returns a view of x's memory as a vector of n elements.
func flat(x *tensor.Tensor, n int) *tensor.Tensor {
	v, err := x.AsStrided([]int{n}, []int{1}, x.Offset())
	if err != nil {
		panic(err)
	}
	return v
}

// bytesOf returns the memory of v.
func bytesOf(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// overlaid returns n zeros of f32 with this shape, and a view of the first few of them as i32.
func overlaid(n, few int, shape ...int) (floats, ints *tensor.Tensor) {
	memory := make([]int32, n)
	floats, err := tensor.FromBytes(bytesOf(memory), tensor.F32, shape...)
	if err != nil {
		panic(err)
	}
	return floats, i32(memory[:few]...)
}
