package tensortest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/tensor"
)

const (
	// guardBytes is the length of the guard band on each side. The widest vector register of any
	// machine fits into it.
	guardBytes = 256

	// rowGap is the number of elements between the rows of a strided tensor.
	rowGap = 5

	// vectorStride is the stride of a strided vector.
	vectorStride = 3
)

// Guarded returns a contiguous tensor between two guard bands of Go memory, and a function that
// checks the bands and reports each one that was written to. The elements start as NaN, or as a
// conspicuous value for the other dtypes. The first element is aligned to the size of an element
// and no further, so that a kernel that needs more alignment fails.
func Guarded(t TB, d tensor.DType, shape ...int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	return GuardedAs(t, d, shape, rowMajor(shape))
}

// GuardedStrided is Guarded for a view with gaps, which hold canaries too. The last axis is dense
// and the pitch of the rows is 5 elements more than their length; a vector has a stride of 3.
func GuardedStrided(t TB, d tensor.DType, shape ...int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	return Placement{}.Strided(t, d, shape...)
}

// Strided is GuardedStrided in this place.
func (p Placement) Strided(t TB, d tensor.DType, shape ...int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	strides := make([]int, len(shape))
	switch last := len(shape) - 1; {
	case last == 0:
		strides[0] = vectorStride
	case last > 0:
		strides[last] = 1
		step := shape[last] + rowGap
		for i := last - 1; i >= 0; i-- {
			strides[i] = step
			step *= max(shape[i], 1)
		}
	}
	return p.Guarded(t, d, shape, strides)
}

// GuardedAs is Guarded for any strides that are not negative. All memory between elements holds
// canaries.
func GuardedAs(t TB, d tensor.DType, shape, strides []int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	return Placement{}.Guarded(t, d, shape, strides)
}

// Placement says where guarded tensors lie and what they hold before they are written. The zero
// Placement is that of Guarded.
type Placement struct {
	// Memory returns n bytes that are aligned to 8, or end there if AtEnd is set. Nil stands for
	// memory of Go.
	Memory func(n int) []byte

	// Shift moves the first element by this number of elements, which changes its alignment.
	Shift int

	// Filled lets elements start as numbers in place of NaN.
	Filled bool

	// AtStart and AtEnd leave out the guard band before or after the tensor, because what lies there
	// is guarded in another way.
	AtStart, AtEnd bool
}

// Guarded is GuardedAs in this place.
func (p Placement) Guarded(t TB, d tensor.DType, shape, strides []int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	elements(t, d, shape)
	if len(shape) != len(strides) {
		t.Fatalf("tensortest: got strides %v for shape %v, want as many strides as axes", strides, shape)
	}
	memory := p.Memory
	if memory == nil {
		memory = words
	}
	size := d.Size()
	inner := extent(shape, strides)
	// The band is one element longer than it must be, so that the tensor is not aligned to it.
	before, after := guardBytes/size+1+p.Shift, guardBytes/size+1
	if p.AtStart {
		before = 0
	}
	if p.AtEnd {
		after = 0
	}
	mem := memory((before + inner + after) * size)
	pattern := canary(d)
	fill(mem, pattern)
	content := poison(d)
	if p.Filled {
		content = ordinary(d)
	}
	x := view(t, over(t, d, mem[before*size:(before+inner)*size]), shape, strides, 0)
	var guarded []bool // nil when every element between the bands belongs to the tensor
	if slices.Equal(strides, rowMajor(shape)) {
		fill(mem[before*size:(before+inner)*size], content)
	} else {
		guarded = slices.Repeat([]bool{true}, inner)
		outer, run, step := shape, 1, 1
		if last := len(shape) - 1; last >= 0 {
			outer, run, step = shape[:last], shape[last], strides[last]
		}
		eachIndex(outer, func(index []int) {
			at := 0
			for axis, k := range index {
				at += k * strides[axis]
			}
			for range run {
				guarded[at] = false
				copy(mem[(before+at)*size:], content)
				at += step
			}
		})
	}
	return x, func(t TB) {
		t.Helper()
		changed, first := 0, 0
		look := func(lo, hi int) {
			for i := lo; i < hi; i++ {
				if (i < 0 || i >= inner || guarded[i]) && !bytes.Equal(mem[(before+i)*size:(before+i+1)*size], pattern) {
					if changed++; changed == 1 {
						first = i
					}
				}
			}
		}
		look(-before, 0)
		if guarded != nil {
			look(0, inner)
		}
		look(inner, inner+after)
		if changed > 0 {
			t.Errorf("tensortest: %v%v strides %v: %d guard elements were written to, the first at %s: got % x, want % x",
				d, shape, strides, changed, place(first, inner), mem[(before+first)*size:(before+first+1)*size], pattern)
		}
	}
}

// place names an element of the guard by its distance from the tensor.
func place(at, inner int) string {
	switch {
	case at < 0:
		return plural(-at) + " before the first"
	case at >= inner:
		return plural(at-inner+1) + " after the last"
	default:
		return "a gap, " + plural(at) + " after the first"
	}
}

func fill(mem, pattern []byte) {
	for n := copy(mem, pattern); n < len(mem); {
		n += copy(mem[n:], mem[:n])
	}
}

// ordinary returns the bytes of an element that may be taken for a result.
func ordinary(d tensor.DType) []byte {
	switch d {
	case tensor.F64:
		return binary.NativeEndian.AppendUint64(nil, 0x40a0000000000000)
	case tensor.F32:
		return binary.NativeEndian.AppendUint32(nil, 0x45000000)
	case tensor.BF16:
		return binary.NativeEndian.AppendUint16(nil, 0x4500)
	case tensor.F16:
		return binary.NativeEndian.AppendUint16(nil, 0x6800)
	case tensor.I64:
		return binary.NativeEndian.AppendUint64(nil, 3)
	case tensor.I32:
		return binary.NativeEndian.AppendUint32(nil, 3)
	case tensor.I16:
		return binary.NativeEndian.AppendUint16(nil, 3)
	case tensor.Bool:
		return []byte{0}
	case tensor.F8E4M3, tensor.F8E5M2, tensor.U8:
		return []byte{0x3c}
	case tensor.Unspecified:
	}
	panic(fmt.Sprintf("BUG: tensortest: no ordinary value of dtype %v", d))
}

// canary returns the bytes of a guard element: a NaN that arithmetic does not produce, an integer
// that is not an index, or an unlikely byte.
func canary(d tensor.DType) []byte {
	switch d {
	case tensor.F64:
		return binary.NativeEndian.AppendUint64(nil, 0x7ff8c0dec0dec0de)
	case tensor.F32:
		return binary.NativeEndian.AppendUint32(nil, 0x7fc0c0de)
	case tensor.BF16:
		return binary.NativeEndian.AppendUint16(nil, 0x7fde)
	case tensor.F16:
		return binary.NativeEndian.AppendUint16(nil, 0x7ede)
	case tensor.F8E4M3:
		return []byte{0xff}
	case tensor.F8E5M2:
		return []byte{0xfe}
	case tensor.I64:
		return binary.NativeEndian.AppendUint64(nil, 0x5ec0dec0dec0de5e)
	case tensor.I32:
		return binary.NativeEndian.AppendUint32(nil, 0x5ec0de5e)
	case tensor.I16:
		return binary.NativeEndian.AppendUint16(nil, 0x5ede)
	case tensor.U8, tensor.Bool:
		return []byte{0xc5}
	default:
		panic("tensortest: guard of " + d.String())
	}
}

// poison returns the bytes of an element that has not been written yet.
func poison(d tensor.DType) []byte {
	switch d {
	case tensor.F64:
		return binary.NativeEndian.AppendUint64(nil, 0x7ff8000000000000)
	case tensor.F32:
		return binary.NativeEndian.AppendUint32(nil, 0x7fc00000)
	case tensor.BF16:
		return binary.NativeEndian.AppendUint16(nil, 0x7fc0)
	case tensor.F16:
		return binary.NativeEndian.AppendUint16(nil, 0x7e00)
	case tensor.F8E4M3:
		return []byte{0x7f}
	case tensor.F8E5M2:
		return []byte{0x7e}
	case tensor.I64:
		return binary.NativeEndian.AppendUint64(nil, 1<<63)
	case tensor.I32:
		return binary.NativeEndian.AppendUint32(nil, 1<<31)
	case tensor.I16:
		return binary.NativeEndian.AppendUint16(nil, 1<<15)
	case tensor.U8:
		return []byte{0xa5}
	case tensor.Bool:
		return []byte{1}
	default:
		panic("tensortest: poison of " + d.String())
	}
}
