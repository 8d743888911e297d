package opregistry

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// validate checks the arguments of a call against the description. It returns an *ArgError.
func (p *plan) validate(args unsafe.Pointer) error {
	c := Check{op: p.op}
	var z sizes
	var memory ranges
	for i := range p.symbols {
		z.of[i] = -1
	}
	if p.lists != nil {
		p.checkLists(&c, &z, args)
	}
	for _, i := range p.order {
		o := &p.operands[i]
		if o.form != formOne {
			p.checkList(&c, &z, args, o)
		} else if t := o.one(args); t != nil && o.need != needWhen || p.present(&c, args, o, t) {
			p.checkTensor(&c, &z, args, o, t)
			if p.singles {
				memory.lo[i], memory.hi[i] = t.ByteRange()
			}
		}
		if c.err != nil {
			return c.err
		}
	}
	for i := range p.numbers {
		if n := &p.numbers[i]; n.given(args) && !n.holds(n.value(args)) {
			c.Fail(n.name, n.want, "%v", n.value(args))
			return c.err
		}
	}
	if p.saved >= 0 && *(**Saved)(unsafe.Add(args, p.saved)) == nil {
		c.Fail("saved", "the *opregistry.Saved that forward and backward share", "nil")
		return c.err
	}
	if p.check != nil {
		p.check((*Check)(noescape(unsafe.Pointer(&c))), noescape(args))
		if c.err != nil {
			return c.err
		}
	}
	if p.singles {
		p.fewApart(&c, args, &memory)
	} else {
		p.listsApart(&c, args)
	}
	return c.err
}

// noescape hides a pointer from escape analysis: what it points to is used by the function that it
// is given to and not kept.
//
//go:nosplit
func noescape(p unsafe.Pointer) unsafe.Pointer {
	hidden := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&hidden))
}

// present reports whether an operand is there. It is a fault when it should be and is not, or the
// reverse.
func (p *plan) present(c *Check, args unsafe.Pointer, o *operand, t *tensor.Tensor) bool {
	switch {
	case o.need == needWhen && o.given.holds(args) != (t != nil):
		p.wrongPresence(c, o, t)
	case o.need == needAlways && t == nil:
		c.Fail(o.name, "a tensor", "nil")
	}
	return t != nil && c.err == nil
}

// checkTensor checks an operand by itself and against the symbols of shapes.
func (p *plan) checkTensor(c *Check, z *sizes, args unsafe.Pointer, o *operand, t *tensor.Tensor) {
	if !o.dtypes.Has(t.DType()) {
		c.Fail(o.name, "dtype "+o.dtypes.String(), "%v", t)
		return
	}
	if o.like >= 0 {
		if like := p.likeOf(o, args); like != nil && like.DType() != t.DType() {
			c.SameDType(o.name, t, p.operands[o.like].name, like)
			return
		}
	}
	switch r := &o.shape; r.kind {
	case anyShape:
	case sameShape:
		if like := p.operands[r.same].one(args); !t.Shape().Equal(like.Shape()) {
			c.SameShape(o.name, t, p.operands[r.same].name, like)
		}
	case countShape:
		if n := r.axes[0].of(z); n >= 0 && n != t.NumElements() {
			c.Elements(o.name, t, n, r.axes[0].describe(p))
		}
	case axesShape:
		if !r.fits(z, t.Shape()) {
			c.Fail(o.name, r.describe(p, z), "%v", t)
		}
	}
	if o.packed && !t.IsContiguous() {
		c.Fail(o.name, "a contiguous tensor", "%v", t)
	}
}

// wrongPresence reports an operand that is given or missing where another argument says otherwise.
func (p *plan) wrongPresence(c *Check, o *operand, t *tensor.Tensor) {
	decides := ""
	for i := range p.params {
		if p.params[i].Name == o.param {
			decides = p.params[i].Given[len("?:"):]
		}
	}
	if t == nil {
		c.Fail(o.name, "a tensor with "+decides, "nil")
		return
	}
	c.Fail(o.name, "nil without "+decides, "%v", t)
}

// likeOf returns a tensor whose dtype those of an operand have, nil when the call has none.
func (p *plan) likeOf(o *operand, args unsafe.Pointer) *tensor.Tensor {
	if like := &p.operands[o.like]; like.form == formOne {
		return like.one(args)
	}
	return p.first(o.like, args)
}

// first returns the first tensor of an operand.
func (p *plan) first(k int, args unsafe.Pointer) *tensor.Tensor {
	first, n, stride := p.operands[k].tensors(args)
	if n == 0 {
		return nil
	}
	return tensorAt(first, 0, stride)
}

// checkLists checks the number of lists and their lengths.
func (p *plan) checkLists(c *Check, z *sizes, args unsafe.Pointer) {
	l := p.lists
	lists := *(*[][]*tensor.Tensor)(unsafe.Add(args, l.offset))
	if len(lists) < l.least || len(lists) > l.most {
		count := strconv.Itoa(l.least)
		if l.most > l.least {
			count += " to " + strconv.Itoa(l.most)
		}
		c.Fail(l.name, fmt.Sprintf("%s lists (%s)", count, l.names), "%d lists", len(lists))
		return
	}
	n := 0
	for i, list := range lists {
		if i == 0 {
			n = len(list)
		} else if len(list) != n {
			c.Fail(p.operands[l.first+i].name, fmt.Sprintf("%d tensors, as list 0", n), "%d", len(list))
			return
		}
	}
	if l.length >= 0 {
		z.of[l.length] = n
	}
}

// checkList checks the tensors of a list.
func (p *plan) checkList(c *Check, z *sizes, args unsafe.Pointer, o *operand) {
	first, n, stride := o.tensors(args)
	switch {
	case c.err != nil:
		return
	case o.need == needWhen && first == nil && o.given.holds(args):
		p.wrongPresence(c, o, nil)
		return
	case o.need == needWhen && n > 0 && !o.given.holds(args):
		p.wrongPresence(c, o, tensorAt(first, 0, stride))
		return
	case o.form == formList && o.need != needAlways && first == nil:
		return
	}
	if o.length >= 0 {
		if v := &z.of[o.length]; *v < 0 {
			*v = n
		} else if *v != n {
			c.Fail(o.name, fmt.Sprintf("%d tensors (%s)", *v, p.symbols[o.length]), "%d", n)
			return
		}
	}
	// The tensors of a slice of lists have the shapes of those of its first list.
	var like unsafe.Pointer
	if o.form == formRow && o.row > 0 && o.shape.kind == anyShape {
		like, _, _ = p.operands[p.lists.first].tensors(args)
	}
	var dtype *tensor.Tensor
	if o.like >= 0 {
		dtype = p.likeOf(o, args)
	}
	for i := range n {
		t := tensorAt(first, i, stride)
		if t == nil {
			if o.form != formField || o.need == needAlways {
				c.Fail(o.nameOf(i), "a tensor", "nil")
				return
			}
			continue
		}
		switch {
		case !o.dtypes.Has(t.DType()):
			c.Fail(o.nameOf(i), "dtype "+o.dtypes.String(), "%v", t)
		case dtype != nil && dtype.DType() != t.DType():
			c.SameDType(o.nameOf(i), t, p.operands[o.like].nameOf(0), dtype)
		case like != nil:
			if want := tensorAt(like, i, stride); !t.Shape().Equal(want.Shape()) {
				c.SameShape(o.nameOf(i), t, p.operands[p.lists.first].nameOf(i), want)
			}
		case o.shape.kind == countShape:
			if count := o.shape.axes[0].of(z); count >= 0 && t.NumElements() != count {
				c.Elements(o.nameOf(i), t, count, o.shape.axes[0].describe(p))
			}
		}
		if c.err != nil {
			return
		}
	}
}
