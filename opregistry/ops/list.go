package ops

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// listKind says which dtypes the tensors of a list may have, one bit per dtype, and whether they
// have one element rather than the shape of list 0.
type listKind uint32

const (
	ofF32     listKind = 1 << tensor.F32
	ofBF16    listKind = 1 << tensor.BF16
	ofI16     listKind = 1 << tensor.I16
	ofU8      listKind = 1 << tensor.U8
	ofFP8     listKind = 1<<tensor.F8E4M3 | 1<<tensor.F8E5M2
	computes  listKind = 1<<tensor.F64 | 1<<tensor.F32 | 1<<tensor.BF16 | 1<<tensor.F16
	ofE4M3    listKind = 1 << tensor.F8E4M3
	byteSized listKind = ofFP8 | ofU8

	ofOneElement listKind = 1 << 31
)

func (k listKind) holds(d tensor.DType) bool { return k>>d&1 != 0 }

// String names the dtypes.
func (k listKind) String() string {
	if k&^ofOneElement == computes {
		return "dtype f32, bf16, f16 or f64"
	}
	var names []string
	for _, d := range tensor.DTypes() {
		if k.holds(d) {
			names = append(names, d.String())
		}
	}
	return "dtype " + strings.Join(names, " or ")
}

// kind requires an operand of one of the dtypes of a kind.
func (c *check) kind(name string, t *tensor.Tensor, k listKind) bool {
	if !c.given(name, t) {
		return false
	}
	if !k.holds(t.DType()) {
		c.fail(name, k.String(), "%v", t)
		return false
	}
	return true
}

func listName(list, i int) string { return fmt.Sprintf("tensor_lists[%d][%d]", list, i) }

// flag checks a no-op flag.
func (c *check) flag(noop *tensor.Tensor) {
	if c.dtype("noop_flag", noop, tensor.I32) {
		c.elements("noop_flag", noop, 1, "the flag")
	}
}

// lists checks a no-op flag and that all lists have the length of the first, hold tensors of their
// kind (the default is computes), and have equal shapes index by index. Names are formed only for a
// fault, so that a valid call allocates nothing.
func (c *check) lists(lists [][]*tensor.Tensor, noop *tensor.Tensor, kinds ...listKind) {
	c.flag(noop)
	for l, list := range lists {
		k := computes
		if l < len(kinds) {
			k = kinds[l]
		}
		if c.err == nil && len(list) != len(lists[0]) {
			c.fail(fmt.Sprintf("tensor_lists[%d]", l), itoa(len(lists[0]))+" tensors, as list 0", "%d", len(list))
		}
		for i, t := range list {
			if c.err != nil {
				return
			}
			switch {
			case t == nil || !k.holds(t.DType()):
				c.kind(listName(l, i), t, k)
			case k&ofOneElement != 0:
				if t.NumElements() != 1 {
					c.elements(listName(l, i), t, 1, "one a tensor")
				}
			case !t.Shape().Equal(lists[0][i].Shape()):
				c.sameShape(listName(l, i), t, listName(0, i), lists[0][i])
			}
		}
	}
}

// scalar checks an f32 operand of one element.
func (c *check) scalar(name string, t *tensor.Tensor) bool {
	if !c.dtype(name, t, tensor.F32) {
		return false
	}
	c.elements(name, t, 1, "a number")
	return c.err == nil
}

// norms checks the operands that the norm ops write.
func (c *check) norms(lists [][]*tensor.Tensor, noop, invScale, norm, perTensor *tensor.Tensor) {
	if c.dtype("norm", norm, tensor.F32) {
		c.elements("norm", norm, 1, "the norm")
	}
	if perTensor != nil && c.dtype("per_tensor", perTensor, tensor.F32) {
		c.elements("per_tensor", perTensor, len(lists[0]), "one a tensor")
	}
	c.multiTensorApart(lists, noList, false, single{"noop_flag", noop, true}, single{"inv_scale", invScale, false},
		single{"norm", norm, true}, single{"per_tensor", perTensor, true})
}

// lists adds the tensors of lists. Lists without an access of their own have the last one given.
func (o operands) lists(lists [][]*tensor.Tensor, access ...opregistry.Access) operands {
	for l, list := range lists {
		for i, t := range list {
			o = o.add(listName(l, i), t, access[min(l, len(access)-1)])
		}
	}
	return o
}
