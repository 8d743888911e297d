package opregistry

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// option is an argument that selects what an op computes: a bool or an enumeration.
type option struct {
	name   string
	offset uintptr
	size   uintptr // in bytes: 1 or 8
}

// option adds an argument to those that a signature depends on.
func (c *compiler) option(t reflect.Type, offset uintptr, name string) {
	enumeration := t.PkgPath() != "" && (t.Kind() == reflect.Uint8 || t.Kind() == reflect.Int)
	if t.Kind() == reflect.Bool || enumeration {
		c.options = append(c.options, option{name, offset, t.Size()})
	}
}

func (o *option) value(args unsafe.Pointer) uint64 {
	if o.size == 1 {
		return uint64(*(*uint8)(unsafe.Add(args, o.offset)))
	}
	return *(*uint64)(unsafe.Add(args, o.offset))
}

// Signature returns a number that is the same for calls of an op that take about the same time on
// one impl: the dtypes, axes and layouts of all operands are the same, and so are its bools and
// enumerations. A length above 16 counts by its first four binary digits. Of a list of tensors, the
// number and the last axis of the first count, and the sum of their elements.
func (c Call) Signature() uint64 { return c.op.plan().signature(c.args) }

func (p *plan) signature(args unsafe.Pointer) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, at := range p.signed {
		class := uint64(0)
		if t := *(**tensor.Tensor)(unsafe.Add(args, at)); t != nil {
			class = t.Class()
		}
		h = mix(h, class)
	}
	for _, i := range p.several {
		h = p.operands[i].mixList(h, args)
	}
	packed := uint64(0)
	for i := range p.options {
		packed = bits.RotateLeft64(packed, 7) + p.options[i].value(args)
	}
	return mix(h, packed)
}

func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

func (o *operand) mixList(h uint64, args unsafe.Pointer) uint64 {
	first, n, stride := o.tensors(args)
	total, last, dtype := 0, 0, tensor.DType(0)
	for i := range n {
		t := tensorAt(first, i, stride)
		if t == nil {
			continue
		}
		total, dtype = total+t.NumElements(), t.DType()
		if shape := t.Shape(); len(shape) > 0 {
			last = shape[len(shape)-1]
		}
	}
	return mix(mix(mix(mix(h, tensor.Rounded(n)), tensor.Rounded(total)), tensor.Rounded(last)), uint64(dtype))
}

// Describe returns the operands and options that a signature depends on, as text for people: "A f32
// [512 256], B f32 [1024 256], D f32 [1024 512], transa".
func (c Call) Describe() string {
	p := c.op.plan()
	var words []string
	for i := range p.operands {
		o := &p.operands[i]
		first, n, stride := o.tensors(c.args)
		given, total := 0, 0
		var one *tensor.Tensor
		for k := range n {
			if t := tensorAt(first, k, stride); t != nil {
				given, total, one = given+1, total+t.NumElements(), t
			}
		}
		switch {
		case given == 0:
		case o.form == formOne:
			layout := ""
			if !one.IsContiguous() {
				layout = " strided"
			}
			words = append(words, fmt.Sprintf("%s %v %v%s", o.name, one.DType(), one.Shape(), layout))
		default:
			words = append(words, fmt.Sprintf("%d× %s %v of %d elements", given, o.name, one.DType(), total))
		}
	}
	for i := range p.options {
		if o := &p.options[i]; o.value(c.args) != 0 {
			word := o.name
			if v := o.value(c.args); v != 1 {
				word = fmt.Sprintf("%s=%d", o.name, v)
			}
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}
