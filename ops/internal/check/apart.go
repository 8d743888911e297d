package check

import (
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// The numbers of operands that are sorted at once, for calls with few and with many operands. Both
// buffers fit on the stack; the second is used only when it is needed.
const (
	fewOperands  = 512
	manyOperands = 6144
)

// operandAt returns an operand of a call by index, and whether it is written. A nil operand is
// skipped.
type operandAt func(i int) (t *tensor.Tensor, written bool)

// span holds where the memory of an operand begins.
type span struct {
	lo      uintptr
	at      int32
	written bool
}

func (s span) compare(o span) int {
	switch {
	case s.lo < o.lo || s.lo == o.lo && s.at < o.at:
		return -1
	case s == o:
		return 0
	default:
		return 1
	}
}

// AllApart requires that each of n operands that is written shares no memory with any other
// operand. name is called for a fault only.
//
// The operands are visited by address, and one whose byte range meets an earlier one is compared
// with all others. No call needs the heap; a call with more than manyOperands makes several passes
// over all of them.
func (c *Call) AllApart(n int, operand operandAt, name func(i int) string) {
	if n > fewOperands {
		c.manyApart(n, operand, name)
		return
	}
	var buf [fewOperands]span
	c.apartIn(buf[:], n, operand, name)
}

// manyApart is a separate function so that its buffer is not part of the frame of AllApart.
//
//go:noinline
func (c *Call) manyApart(n int, operand operandAt, name func(i int) string) {
	var buf [manyOperands]span
	c.apartIn(buf[:], n, operand, name)
}

func (c *Call) apartIn(buf []span, n int, operand operandAt, name func(i int) string) {
	var written, read uintptr // the highest end so far
	last := span{at: -1}
	window := len(buf) / 2
	for more := true; more && c.Err == nil; {
		// Gather the operands that come next by address; whenever there are too many, keep only
		// those in the lower half.
		more = false
		next := buf[:0]
		for i := range n {
			t, w := operand(i)
			if t == nil || t.NumElements() == 0 {
				continue
			}
			lo, _ := t.ByteRange()
			s := span{lo, int32(i), w}
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
		slices.SortFunc(next, span.compare)
		for _, s := range next {
			if s.lo < written || s.written && s.lo < read {
				c.clash(int(s.at), n, operand, name)
			}
			t, _ := operand(int(s.at))
			if _, hi := t.ByteRange(); s.written {
				written = max(written, hi)
			} else {
				read = max(read, hi)
			}
			last = s
		}
	}
}

// clash compares one operand with all others.
func (c *Call) clash(at, n int, operand operandAt, name func(i int) string) {
	t, written := operand(at)
	for i := range n {
		o, w := operand(i)
		if c.Err != nil || i == at || !(written || w) || !tensor.Overlap(t, o) {
			continue
		}
		wrong, other := at, i
		if !written || w && i > at {
			wrong, other = i, at
		}
		c.Fail(name(wrong), "memory apart from "+name(other), "a view that overlaps %s", name(other))
	}
}

// Single is an operand that is not part of a list.
type Single struct {
	Name    string
	Tensor  *tensor.Tensor
	Written bool
}

// MultiTensorApart is AllApart for lists of equal length and single operands. In paired lists, the
// first one may hold the same views as the second.
func (c *Call) MultiTensorApart(lists [][]*tensor.Tensor, written func(list int) bool, paired bool, singles ...Single) {
	if c.Err != nil {
		return
	}
	n := len(lists[0])
	inLists := n * len(lists)
	c.AllApart(inLists+len(singles), func(i int) (*tensor.Tensor, bool) {
		if i >= inLists {
			return singles[i-inLists].Tensor, singles[i-inLists].Written
		}
		l, at := i/n, i%n
		if paired && l == 0 && tensor.SameView(lists[0][at], lists[1][at]) {
			return nil, false
		}
		return lists[l][at], written(l)
	}, func(i int) string {
		if i >= inLists {
			return singles[i-inLists].Name
		}
		return ListName(i/n, i%n)
	})
}

// AfterFirst and OnlySecond say which of an op's lists are written.
func AfterFirst(list int) bool { return list > 0 }
func OnlySecond(list int) bool { return list == 1 }
