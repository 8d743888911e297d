package tokenizer

// maxScan is the number of symbols up to which the pair to join next is found by looking at all of
// them; longer words use a heap.
const maxScan = 48

// merge joins the symbols of a word and returns how many remain, which lie at the beginning.
func (m *Model) merge(ids []int32) int {
	if len(ids) < 2 {
		return len(ids)
	}
	if len(ids) > maxScan {
		return m.mergeLong(ids)
	}
	var joined, ranks [maxScan]int32
	n := len(ids)
	for i := range n - 1 {
		joined[i], ranks[i] = m.pairs.get(ids[i], ids[i+1])
	}
	for n > 1 {
		best, at := noRank, 0
		for i, rank := range ranks[:n-1] {
			if rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			break
		}
		ids[at] = joined[at]
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(ranks[at:n-2], ranks[at+1:n-1])
		copy(joined[at:n-2], joined[at+1:n-1])
		n--
		if at > 0 {
			joined[at-1], ranks[at-1] = m.pairs.get(ids[at-1], ids[at])
		}
		if at < n-1 {
			joined[at], ranks[at] = m.pairs.get(ids[at], ids[at+1])
		}
	}
	return n
}

// scratch is the memory for a long word: its symbols as a list, and the pairs that may be joined.
type scratch struct {
	next, prev []int32
	heap       heap
}

// candidate is a pair of symbols that a merge joins: the one at position at and the next.
type candidate struct {
	rank, at    int32
	left, right int32
}

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// mergeLong is merge for long words. A joined pair stays in the heap with the symbols that it was
// seen with, by which it is recognised as outdated.
func (m *Model) mergeLong(ids []int32) int {
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	s.next, s.prev, s.heap = s.next[:0], s.prev[:0], s.heap[:0]
	for i := range ids {
		s.next, s.prev = append(s.next, int32(i+1)), append(s.prev, int32(i-1))
	}
	end := int32(len(ids))
	for i := range end - 1 {
		if _, rank := m.pairs.get(ids[i], ids[i+1]); rank != noRank {
			s.heap = append(s.heap, candidate{rank: rank, at: i, left: ids[i], right: ids[i+1]})
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.heap.down(i)
	}
	for len(s.heap) > 0 {
		c := s.heap.pop()
		next := s.next[c.at]
		if next >= end || ids[c.at] != c.left || ids[next] != c.right {
			continue
		}
		ids[c.at], _ = m.pairs.get(c.left, c.right)
		ids[next] = None
		after := s.next[next]
		s.next[c.at] = after
		if after < end {
			s.prev[after] = c.at
			m.push(s, ids, c.at, after)
		}
		if before := s.prev[c.at]; before >= 0 {
			m.push(s, ids, before, c.at)
		}
	}
	n := 0
	for i := int32(0); i < end; i = s.next[i] {
		ids[n] = ids[i]
		n++
	}
	return n
}

// push adds the pair of symbols at two positions, if a merge joins it.
func (m *Model) push(s *scratch, ids []int32, at, next int32) {
	if _, rank := m.pairs.get(ids[at], ids[next]); rank != noRank {
		s.heap.push(candidate{rank: rank, at: at, left: ids[at], right: ids[next]})
	}
}

// heap has the first candidate at index 0.
type heap []candidate

func (h *heap) push(c candidate) {
	*h = append(*h, c)
	i := len(*h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !(*h)[i].before((*h)[up]) {
			break
		}
		(*h)[i], (*h)[up] = (*h)[up], (*h)[i]
		i = up
	}
}

func (h *heap) pop() candidate {
	first, last := (*h)[0], len(*h)-1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	h.down(0)
	return first
}

func (h *heap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(*h); child++ {
			if (*h)[child].before((*h)[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}
