package opregistry

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// validate checks the arguments of a call against the description. It returns the place of the
// operands, or an *ArgError.
func (p *plan) validate(args unsafe.Pointer, h hooks) (device.Place, error) {
	if len(p.operands) > usualOperands {
		return p.validateMany(args, h)
	}
	var memory [usualOperands]extent
	return p.validateWith(args, h, memory[:])
}

// validateMany is a function of its own so that its buffer is not part of the frame of validate.
//
//go:noinline
func (p *plan) validateMany(args unsafe.Pointer, h hooks) (device.Place, error) {
	var memory [fewOperands]extent
	return p.validateWith(args, h, memory[:])
}

// validateWith is validate with a buffer of zeros for the memory of each operand, if all are single
// tensors.
func (p *plan) validateWith(args unsafe.Pointer, h hooks, memory []extent) (device.Place, error) {
	c := Check{op: p.op}
	at := nowhere
	z := p.unset
	if p.lists != nil {
		p.checkLists(&c, &z, args)
	}
	for _, o := range p.ordered {
		if o.form != formOne {
			if at = p.checkList(&c, &z, args, o, at); c.err != nil {
				return 0, c.err
			}
			continue
		}
		t := o.one(args)
		switch {
		case o.need == needWhen && o.given.holds(args) != (t != nil):
			p.wrongPresence(&c, o, t)
			return 0, c.err
		case t == nil && o.need == needAlways:
			c.Fail(o.name, "a tensor", "nil")
			return 0, c.err
		case t == nil:
			continue
		}
		if why := p.match(&z, args, o, t); why != matches {
			p.refuse(&c, &z, args, o, t, why)
			return 0, c.err
		}
		at = at.with(t)
		if p.singles {
			memory[o.index].lo, memory[o.index].hi = t.ByteRange()
		}
	}
	for i := range p.numbers {
		if n := &p.numbers[i]; n.given(args) && !n.holds(n.value(args)) {
			c.Fail(n.name, n.want, "%v", n.value(args))
			return 0, c.err
		}
	}
	if p.saved >= 0 && *(**Saved)(unsafe.Add(args, p.saved)) == nil {
		c.Fail("saved", "the *opregistry.Saved that forward and backward share", "nil")
		return 0, c.err
	}
	if h != nil {
		if err := h.faultOf(); err != nil {
			return 0, err
		}
	}
	if p.singles {
		p.fewApart(&c, args, h, memory[:len(p.operands)])
	} else {
		p.listsApart(&c, args, h)
	}
	return at.place(), c.err
}

// places is where the tensors seen so far lie: the bits that all of their places have, and those
// that one of them has. All lie in one place if the two are equal.
type places struct{ all, any device.Place }

// nowhere is the places of no tensors.
var nowhere = places{all: ^device.Place(0)}

func (s places) with(t *tensor.Tensor) places {
	p := t.Place()
	return places{s.all & p, s.any | p}
}

// place returns the place of all tensors, PlaceHost if there are none.
func (s places) place() device.Place {
	switch {
	case s.all == s.any:
		return s.any
	case s == nowhere:
		return device.PlaceHost
	default:
		return device.PlaceMixed
	}
}

// mismatch is what is wrong with an operand.
type mismatch uint8

const (
	matches mismatch = iota
	wrongDType
	otherDType
	wrongShape
	notPacked
)

// match compares an operand with its description and with the symbols of shapes.
func (p *plan) match(z *sizes, args unsafe.Pointer, o *operand, t *tensor.Tensor) mismatch {
	d := t.DType()
	if !o.dtypes.Has(d) {
		return wrongDType
	}
	if o.likeOne {
		if like := *(**tensor.Tensor)(unsafe.Add(args, o.likeAt)); like != nil && like.DType() != d {
			return otherDType
		}
	} else if o.like >= 0 {
		if like := p.first(o.like, args); like != nil && like.DType() != d {
			return otherDType
		}
	}
	switch r := &o.shape; r.kind {
	case sameShape:
		if like := *(**tensor.Tensor)(unsafe.Add(args, r.sameAt)); !t.Shape().Equal(like.Shape()) {
			return wrongShape
		}
	case countShape:
		if n := r.axes[0].of(z); n >= 0 && n != t.NumElements() {
			return wrongShape
		}
	case rankShape:
		if n := len(t.Shape()) - len(r.axes); n < 0 || n > 0 && !r.own {
			return wrongShape
		}
	case axesShape:
		if !r.fits(z, t.Shape()) {
			return wrongShape
		}
	}
	if o.packed && !t.IsContiguous() {
		return notPacked
	}
	return matches
}

// refuse reports an operand that does not match.
func (p *plan) refuse(c *Check, z *sizes, args unsafe.Pointer, o *operand, t *tensor.Tensor, why mismatch) {
	switch r := &o.shape; {
	case why == wrongDType:
		c.Fail(o.name, "dtype "+o.dtypes.String(), "%v", t)
	case why == otherDType:
		c.SameDType(o.name, t, p.operands[o.like].name, p.first(o.like, args))
	case why == notPacked:
		c.Fail(o.name, "a contiguous tensor", "%v", t)
	case r.kind == sameShape:
		c.SameShape(o.name, t, p.operands[r.same].name, p.operands[r.same].one(args))
	case r.kind == countShape:
		c.Elements(o.name, t, r.axes[0].of(z), r.axes[0].describe(p))
	default:
		c.Fail(o.name, r.describe(p, z), "%v", t)
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

// checkList checks the tensors of a list and adds them to those of which at is the places.
func (p *plan) checkList(c *Check, z *sizes, args unsafe.Pointer, o *operand, at places) places {
	first, n, stride := o.tensors(args)
	switch {
	case c.err != nil:
		return at
	case o.need == needWhen && first == nil && o.given.holds(args):
		p.wrongPresence(c, o, nil)
		return at
	case o.need == needWhen && n > 0 && !o.given.holds(args):
		p.wrongPresence(c, o, tensorAt(first, 0, stride))
		return at
	case o.form == formList && o.need != needAlways && first == nil:
		return at
	}
	if o.length >= 0 {
		if v := &z.of[o.length]; *v < 0 {
			*v = n
		} else if *v != n {
			c.Fail(o.name, fmt.Sprintf("%d tensors (%s)", *v, p.symbols[o.length]), "%d", n)
			return at
		}
	}
	// The tensors of a slice of lists have the shapes of those of its first list.
	var like unsafe.Pointer
	if o.form == formRow && o.row > 0 && o.shape.kind == anyShape {
		like, _, _ = p.operands[p.lists.first].tensors(args)
	}
	var dtype *tensor.Tensor
	if o.like >= 0 {
		dtype = p.first(o.like, args)
	}
	for i := range n {
		t := tensorAt(first, i, stride)
		if t == nil {
			if o.form != formField || o.need == needAlways {
				c.Fail(o.nameOf(i), "a tensor", "nil")
				return at
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
			return at
		}
		at = at.with(t)
	}
	return at
}
