package opregistry

import (
	"fmt"
	"strconv"

	"github.com/primus-fl/primus/tensor"
)

// Check keeps the first fault of a call. After a fault its methods do nothing and report false.
type Check struct {
	op  string
	err error // an *ArgError
}

// OK reports whether no fault was found yet.
func (c *Check) OK() bool { return c.err == nil }

// Fail records that an argument is wrong: what was got, as in fmt.Sprintf, and what is wanted.
func (c *Check) Fail(name, want, gotFormat string, args ...any) {
	if c.err == nil {
		c.err = &ArgError{Op: c.op, Operand: name, Got: fmt.Sprintf(gotFormat, args...), Want: want}
	}
}

// Rename passes the name of the argument that is wrong through rename, for a check that serves
// several arguments.
func (c *Check) Rename(rename func(name string) string) {
	if fault, ok := c.err.(*ArgError); ok {
		fault.Operand = rename(fault.Operand)
	}
}

// Given requires an operand.
func (c *Check) Given(name string, t *tensor.Tensor) bool {
	if c.err == nil && t == nil {
		c.Fail(name, "a tensor", "nil")
	}
	return c.err == nil
}

// Absent requires an operand to be left out; when says in which calls, such as "without gelu".
func (c *Check) Absent(name string, t *tensor.Tensor, when string) bool {
	if c.err == nil && t != nil {
		c.Fail(name, "nil "+when, "%v", t)
	}
	return c.err == nil
}

// DType requires an operand of one of these dtypes.
func (c *Check) DType(name string, t *tensor.Tensor, want DTypes) bool {
	if c.Given(name, t) && !want.Has(t.DType()) {
		c.Fail(name, "dtype "+want.String(), "%v", t)
	}
	return c.err == nil
}

// SameDType requires two operands of one dtype.
func (c *Check) SameDType(name string, t *tensor.Tensor, other string, o *tensor.Tensor) bool {
	return c.err == nil && (t.DType() == o.DType() || c.failDType(name, t, other, o))
}

func (c *Check) failDType(name string, t *tensor.Tensor, other string, o *tensor.Tensor) bool {
	c.Fail(name, "the dtype of "+other+", "+o.DType().String(), "%v", t)
	return false
}

// SameShape requires two operands of one shape.
func (c *Check) SameShape(name string, t *tensor.Tensor, other string, o *tensor.Tensor) bool {
	if c.err == nil && !t.Shape().Equal(o.Shape()) {
		c.Fail(name, "the shape of "+other+", "+o.Shape().String(), "%v", t)
	}
	return c.err == nil
}

// Shape requires an operand with these axes.
func (c *Check) Shape(name string, t *tensor.Tensor, want ...int) bool {
	if c.err == nil && !t.Shape().Equal(want) {
		c.Fail(name, "shape "+append(tensor.Shape(nil), want...).String(), "%v", t)
	}
	return c.err == nil
}

// Rank requires an operand with this number of axes.
func (c *Check) Rank(name string, t *tensor.Tensor, rank int) bool {
	return c.err == nil && (len(t.Shape()) == rank || c.failRank(name, "", t, rank))
}

// MinRank requires an operand with at least this number of axes.
func (c *Check) MinRank(name string, t *tensor.Tensor, rank int) bool {
	return c.err == nil && (len(t.Shape()) >= rank || c.failRank(name, "at least ", t, rank))
}

func (c *Check) failRank(name, most string, t *tensor.Tensor, rank int) bool {
	c.Fail(name, most+axes(rank), "%v", t)
	return false
}

func axes(n int) string {
	if n == 1 {
		return "1 axis"
	}
	return strconv.Itoa(n) + " axes"
}

// Elements requires an operand of n elements, whatever its axes; what says what they are, such as
// "one per row".
func (c *Check) Elements(name string, t *tensor.Tensor, n int, what string) bool {
	return c.err == nil && (t.NumElements() == n || c.failElements(name, t, n, what))
}

func (c *Check) failElements(name string, t *tensor.Tensor, n int, what string) bool {
	unit := " elements ("
	if n == 1 {
		unit = " element ("
	}
	c.Fail(name, strconv.Itoa(n)+unit+what+")", "%v", t)
	return false
}
