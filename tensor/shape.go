package tensor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Shape holds the length of each axis, outermost first. A Shape of length 0 is the shape of a
// scalar.
type Shape []int

// NumElements returns the product of the axes, 1 for a scalar.
func (s Shape) NumElements() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether both shapes have the same axes.
func (s Shape) Equal(o Shape) bool { return slices.Equal(s, o) }

// Rows returns the product of all axes but the last, 1 for a vector or scalar.
func (s Shape) Rows() int {
	if len(s) == 0 {
		return 1
	}
	return s[:len(s)-1].NumElements()
}

// Cols returns the length of the last axis, 1 for a scalar.
func (s Shape) Cols() int {
	if len(s) == 0 {
		return 1
	}
	return s[len(s)-1]
}

// String returns the shape in the form "[2 3 4]".
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// rowMajor returns the strides of a contiguous tensor of this shape.
func (s Shape) rowMajor() []int {
	strides := make([]int, len(s))
	step := 1
	for i := len(s) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(s[i], 1)
	}
	return strides
}

// byteSize returns the size of a contiguous tensor in bytes, or an error for a negative axis and
// for a size that no machine can address. Axes of length 0 are left out of the second check, so
// that strides never overflow either.
func (s Shape) byteSize(fn string, d DType) (int, error) {
	if !d.Valid() {
		return 0, &Error{Func: fn, Got: d.String(), Want: "a valid dtype"}
	}
	size, empty := d.Size(), false
	for _, n := range s {
		switch {
		case n < 0:
			return 0, &Error{Func: fn, Got: fmt.Sprintf("shape %v", s), Want: "axes >= 0"}
		case n == 0:
			empty = true
		case size > math.MaxInt/n:
			return 0, &Error{Func: fn, Got: fmt.Sprintf("shape %v of %v", s, d), Want: "a size that fits in an int"}
		default:
			size *= n
		}
	}
	if empty {
		return 0, nil
	}
	return size, nil
}
