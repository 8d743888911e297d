package ops

import (
	"cmp"
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// apartWindow is the number of operands that allApart looks at in one pass.
const apartWindow = 512

// span is the memory from the first to the last byte of an operand.
type span struct {
	lo, hi  uintptr
	at      int // the operand's index
	written bool
}

func (s span) compare(o span) int {
	return cmp.Or(cmp.Compare(s.lo, o.lo), cmp.Compare(s.at, o.at))
}

// allApart requires each of n operands that is written to share no memory with any
// other one. operand returns the operand with an index and whether it is
// written; nil is left out. name is called for a fault only.
//
// The operands are visited by address, apartWindow of them in each pass over
// all, so that any number needs no heap and n log n steps; an operand whose byte
// range meets one before it is compared with all others.
func (c *check) allApart(n int, operand func(i int) (t *tensor.Tensor, written bool), name func(i int) string) {
	var buf [2 * apartWindow]span
	var written, read uintptr // the highest end so far
	last := span{at: -1}
	for more := true; more && c.err == nil; {
		more = false
		next := buf[:0]
		for i := range n {
			t, w := operand(i)
			if t == nil || t.NumElements() == 0 {
				continue
			}
			s := span{at: i, written: w}
			s.lo, s.hi = t.ByteRange()
			if s.compare(last) <= 0 || more && s.compare(next[apartWindow-1]) > 0 {
				continue
			}
			if len(next) == len(buf) {
				slices.SortFunc(next, span.compare)
				next, more = next[:apartWindow], true
			}
			next = append(next, s)
		}
		slices.SortFunc(next, span.compare)
		if len(next) > apartWindow {
			next, more = next[:apartWindow], true
		}
		for _, s := range next {
			if s.lo < written || s.written && s.lo < read {
				c.clash(s.at, n, operand, name)
			}
			if s.written {
				written = max(written, s.hi)
			} else {
				read = max(read, s.hi)
			}
			last = s
		}
	}
}

// clash compares one operand with all others.
func (c *check) clash(at, n int, operand func(i int) (*tensor.Tensor, bool), name func(i int) string) {
	t, written := operand(at)
	for i := range n {
		o, w := operand(i)
		if c.err != nil || i == at || !(written || w) || !tensor.Overlap(t, o) {
			continue
		}
		wrong, other := at, i
		if !written || w && i > at {
			wrong, other = i, at
		}
		c.fail(name(wrong), "memory apart from "+name(other), "a view that overlaps %s", name(other))
	}
}

// single is an operand beside lists.
type single struct {
	name    string
	t       *tensor.Tensor
	written bool
}

// multiTensorApart is allApart for lists of equal length and single operands. In lists
// that are paired, the first one may hold the same views as the second.
func (c *check) multiTensorApart(lists [][]*tensor.Tensor, written func(list int) bool, paired bool, singles ...single) {
	if c.err != nil {
		return
	}
	n := len(lists[0])
	inLists := n * len(lists)
	c.allApart(inLists+len(singles), func(i int) (*tensor.Tensor, bool) {
		if i >= inLists {
			return singles[i-inLists].t, singles[i-inLists].written
		}
		l, at := i/n, i%n
		if paired && l == 0 && tensor.SameView(lists[0][at], lists[1][at]) {
			return nil, false
		}
		return lists[l][at], written(l)
	}, func(i int) string {
		if i >= inLists {
			return singles[i-inLists].name
		}
		return listName(i/n, i%n)
	})
}

// afterFirst and onlySecond say which of an op's lists are written.
func afterFirst(list int) bool { return list > 0 }
func onlySecond(list int) bool { return list == 1 }
func allLists(int) bool        { return true }
func noList(int) bool          { return false }
