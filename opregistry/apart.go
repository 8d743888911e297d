package opregistry

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// The numbers of operands that are compared in pairs in most ops and at most, and the numbers that
// are sorted at once in calls with few and with many. All buffers fit on the stack; the larger ones
// are used only when they are needed.
const (
	usualOperands = 8
	fewOperands   = 24
	someOperands  = 32
	moreOperands  = 512
	manyOperands  = 6144
)

// extent is where the memory of an operand begins and ends, zeros for one without elements.
type extent struct{ lo, hi uintptr }

// fewApart requires that each tensor which a call writes shares no memory with any other of the
// call, except where both are the same view and the description allows it.
func (p *plan) fewApart(c *Check, args unsafe.Pointer, h hooks, memory []extent) {
	written := p.written
	for m := p.depends; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if memory[i].hi != 0 && p.operands[i].accessOf(args, h, 0) != AccessRead {
			written |= 1 << i
		}
	}
	for w := written; w != 0; w &= w - 1 {
		i := bits.TrailingZeros32(w)
		to := memory[i]
		for k, m := range memory {
			if m.lo < to.hi && to.lo < m.hi && k != i && (k < i || written>>k&1 == 0) {
				p.clash(c, args, i, k, 0, 0)
			}
		}
		if c.err != nil {
			return
		}
	}
}

// listsApart is fewApart for any operands.
func (p *plan) listsApart(c *Check, args unsafe.Pointer, h hooks) {
	n := 0
	for i := range p.operands {
		_, k, _ := p.operands[i].tensors(args)
		n += k
	}
	switch {
	case n <= someOperands:
		p.someApart(c, args, h)
	case n <= moreOperands:
		p.moreApart(c, args, h)
	default:
		p.manyApart(c, args, h)
	}
}

// overwritten reports whether a tensor is the same view as one that may be written over it: what
// holds for that one holds for both.
func (p *plan) overwritten(o *operand, args unsafe.Pointer, t *tensor.Tensor, i int) bool {
	for m := o.over; m != 0; m &= m - 1 {
		first, n, stride := p.operands[bits.TrailingZeros64(m)].tensors(args)
		if i < n && tensor.SameView(tensorAt(first, i, stride), t) {
			return true
		}
	}
	return false
}

// clash reports tensor i of operand a, which is written, if it shares memory with tensor k of b.
func (p *plan) clash(c *Check, args unsafe.Pointer, a, b, i, k int) {
	wrong, other := &p.operands[a], &p.operands[b]
	first, _, stride := wrong.tensors(args)
	second, _, step := other.tensors(args)
	written, t := tensorAt(first, i, stride), tensorAt(second, k, step)
	may := i == k && other.over>>a&1 != 0
	if may && tensor.SameView(written, t) || !tensor.Overlap(written, t) {
		return
	}
	name := other.nameOf(k)
	if may {
		c.Fail(wrong.nameOf(i), "the same view as "+name+" or memory apart from it", "a view that overlaps %s in part", name)
		return
	}
	c.Fail(wrong.nameOf(i), "memory apart from "+name, "a view that overlaps %s", name)
}

// span says where the memory of a tensor begins, and which one it is.
type span struct {
	lo      uintptr
	at      int32
	operand int8 // at most maxOperands
	written bool
}

func (s span) compare(o span) int {
	switch {
	case s == o:
		return 0
	case s.lo != o.lo && s.lo < o.lo, s.lo == o.lo && (s.operand < o.operand || s.operand == o.operand && s.at < o.at):
		return -1
	default:
		return 1
	}
}

// These functions are not one so that a call has no larger buffer than it needs.

//go:noinline
func (p *plan) someApart(c *Check, args unsafe.Pointer, h hooks) {
	var buf [someOperands]span
	p.sweep(c, args, h, buf[:])
}

//go:noinline
func (p *plan) moreApart(c *Check, args unsafe.Pointer, h hooks) {
	var buf [moreOperands]span
	p.sweep(c, args, h, buf[:])
}

//go:noinline
func (p *plan) manyApart(c *Check, args unsafe.Pointer, h hooks) {
	var buf [manyOperands]span
	p.sweep(c, args, h, buf[:])
}

// sweep visits the tensors by address and compares one whose bytes may meet those of an earlier one
// with all others. A call with more tensors than fit into buf makes several passes over them.
func (p *plan) sweep(c *Check, args unsafe.Pointer, h hooks, buf []span) {
	var written, read uintptr // the highest end so far
	last := span{operand: -1}
	for more := true; more && c.err == nil; {
		var next []span
		next, more = p.gather(args, h, buf, last)
		for _, s := range next {
			if s.lo < written || s.written && s.lo < read {
				p.meet(c, args, h, s)
			}
			first, _, stride := p.operands[s.operand].tensors(args)
			if _, hi := tensorAt(first, int(s.at), stride).ByteRange(); s.written {
				written = max(written, hi)
			} else {
				read = max(read, hi)
			}
			last = s
		}
	}
}

// gather returns the tensors that come after last by address, in order, and whether there are more.
// Whenever there are too many, only those in the lower half are kept.
func (p *plan) gather(args unsafe.Pointer, h hooks, buf []span, last span) (next []span, more bool) {
	window := len(buf) / 2
	next = buf[:0]
	for k := range p.operands {
		o := &p.operands[k]
		first, n, stride := o.tensors(args)
		written := n > 0 && o.accessOf(args, h, 0) != AccessRead
		for i := range n {
			t := tensorAt(first, i, stride)
			if t == nil || t.NumElements() == 0 || o.over != 0 && p.overwritten(o, args, t, i) {
				continue
			}
			if o.access.hook {
				written = o.accessOf(args, h, i) != AccessRead
			}
			lo, _ := t.ByteRange()
			s := span{lo, int32(i), int8(k), written}
			if s.compare(last) <= 0 || more && s.compare(next[window-1]) > 0 {
				continue
			}
			if len(next) == len(buf) {
				slices.SortFunc(next, span.compare)
				next, more = next[:window], true
				if s.compare(next[window-1]) > 0 {
					continue
				}
			}
			next = append(next, s)
		}
	}
	slices.SortFunc(next, span.compare)
	return next, more
}

// meet compares one tensor with all others.
func (p *plan) meet(c *Check, args unsafe.Pointer, h hooks, s span) {
	a, i := int(s.operand), int(s.at)
	for b := range p.operands {
		o := &p.operands[b]
		first, n, stride := o.tensors(args)
		for k := range n {
			t := tensorAt(first, k, stride)
			if c.err != nil || t == nil || b == a && k == i || o.over != 0 && p.overwritten(o, args, t, k) {
				continue
			}
			written := o.accessOf(args, h, k) != AccessRead
			switch {
			case s.written && (!written || b < a || b == a && k < i):
				p.clash(c, args, a, b, i, k)
			case written:
				p.clash(c, args, b, a, k, i)
			}
		}
	}
}
