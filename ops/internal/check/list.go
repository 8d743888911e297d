package check

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// DTypes says which dtypes the tensors of a list may have, one bit per dtype.
type DTypes uint32

const (
	OfF32     DTypes = 1 << tensor.F32
	OfBF16    DTypes = 1 << tensor.BF16
	OfU8      DTypes = 1 << tensor.U8
	OfFP8     DTypes = 1<<tensor.F8E4M3 | 1<<tensor.F8E5M2
	Computes  DTypes = 1<<tensor.F64 | 1<<tensor.F32 | 1<<tensor.BF16 | 1<<tensor.F16
	OfE4M3    DTypes = 1 << tensor.F8E4M3
	ByteSized DTypes = OfFP8 | OfU8
)

func (k DTypes) Holds(d tensor.DType) bool { return k>>d&1 != 0 }

// String names the dtypes.
func (k DTypes) String() string {
	if k == Computes {
		return "dtype f32, bf16, f16 or f64"
	}
	var names []string
	for _, d := range tensor.DTypes() {
		if k.Holds(d) {
			names = append(names, d.String())
		}
	}
	return "dtype " + strings.Join(names, " or ")
}

// Kind requires an operand of one of the dtypes of a kind.
func (c *Call) Kind(name string, t *tensor.Tensor, k DTypes) bool {
	if !c.Given(name, t) {
		return false
	}
	if !k.Holds(t.DType()) {
		c.Fail(name, k.String(), "%v", t)
		return false
	}
	return true
}

func ListName(list, i int) string { return fmt.Sprintf("tensor_lists[%d][%d]", list, i) }

// flag checks a no-op flag.
func (c *Call) flag(noop *tensor.Tensor) {
	if c.DType("noop_flag", noop, tensor.I32) {
		c.Elements("noop_flag", noop, 1, "the flag")
	}
}

// Lists checks a no-op flag and that all lists have the length of the first, hold tensors of their
// kind (the default is computes), and have equal shapes index by index. Names are formed only for a
// fault, so that a valid call allocates nothing.
func (c *Call) Lists(lists [][]*tensor.Tensor, noop *tensor.Tensor, kinds ...DTypes) {
	c.flag(noop)
	for l, list := range lists {
		k := Computes
		if l < len(kinds) {
			k = kinds[l]
		}
		if c.Err == nil && len(list) != len(lists[0]) {
			c.Fail(fmt.Sprintf("tensor_lists[%d]", l), Itoa(len(lists[0]))+" tensors, as list 0", "%d", len(list))
		}
		for i, t := range list {
			if c.Err != nil {
				return
			}
			switch {
			case t == nil || !k.Holds(t.DType()):
				c.Kind(ListName(l, i), t, k)
			case !t.Shape().Equal(lists[0][i].Shape()):
				c.SameShape(ListName(l, i), t, ListName(0, i), lists[0][i])
			}
		}
	}
}

// Scalar checks an f32 operand of one element.
func (c *Call) Scalar(name string, t *tensor.Tensor) bool {
	if !c.DType(name, t, tensor.F32) {
		return false
	}
	c.Elements(name, t, 1, "a number")
	return c.Err == nil
}

// Lists adds the tensors of lists. Lists without an access of their own have the last one given.
func (o Operands) Lists(lists [][]*tensor.Tensor, access ...opregistry.Access) Operands {
	for l, list := range lists {
		for i, t := range list {
			o = o.Add(ListName(l, i), t, access[min(l, len(access)-1)])
		}
	}
	return o
}
