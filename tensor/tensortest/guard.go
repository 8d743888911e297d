package tensortest

import (
	"bytes"
	"encoding/binary"

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
	return GuardedAs(t, d, shape, strides)
}

// GuardedAs is Guarded for any strides that are not negative. All memory between elements holds
// canaries.
func GuardedAs(t TB, d tensor.DType, shape, strides []int) (*tensor.Tensor, func(t TB)) {
	t.Helper()
	elements(t, d, shape)
	if len(shape) != len(strides) {
		t.Fatalf("tensortest: got strides %v for shape %v, want as many strides as axes", strides, shape)
	}
	size := d.Size()
	inner := extent(shape, strides)
	// The band is one element longer than it must be, so that the tensor is not aligned to it.
	band := guardBytes/size + 1
	mem := words((2*band + inner) * size)
	pattern := canary(d)
	fill(mem, pattern)

	x := view(t, over(t, d, mem[band*size:(band+inner)*size]), shape, strides, 0)
	guarded := make([]bool, 2*band+inner)
	for i := range guarded {
		guarded[i] = true
	}
	poisoned := poison(d)
	eachIndex(shape, func(index []int) {
		at := band
		for axis, k := range index {
			at += k * strides[axis]
		}
		guarded[at] = false
		copy(mem[at*size:], poisoned)
	})
	return x, func(t TB) {
		t.Helper()
		changed, first := 0, 0
		for i, is := range guarded {
			if is && !bytes.Equal(mem[i*size:(i+1)*size], pattern) {
				if changed++; changed == 1 {
					first = i
				}
			}
		}
		if changed > 0 {
			t.Errorf("tensortest: %v%v strides %v: %d guard elements were written to, the first at %s: got % x, want % x",
				d, shape, strides, changed, place(first-band, inner), mem[first*size:(first+1)*size], pattern)
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
	for i := 0; i < len(mem); i += len(pattern) {
		copy(mem[i:], pattern)
	}
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
